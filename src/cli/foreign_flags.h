// SPDX-License-Identifier: Apache-2.0
//
// Flags that people know from other programs (timeout, docker, bubblewrap) and what `coffer run` has instead.
#pragma once

#include <string>
#include <string_view>

namespace coffer::cli {

// "did you mean --wall TIME?" for "--timeout", or why "--rm" is not needed; empty for an unknown flag.
std::string HintForForeignFlag(std::string_view flag);

}  // namespace coffer::cli
