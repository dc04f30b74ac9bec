// SPDX-License-Identifier: Apache-2.0
//
// Flags that people know from other programs (timeout, docker, bubblewrap) and what `coffer run` has instead.
#pragma once

#include <string_view>

namespace coffer::cli {

// "--wall TIME" for "--timeout"; empty if there is nothing like it.
std::string_view OwnFlagFor(std::string_view flag);

}  // namespace coffer::cli
