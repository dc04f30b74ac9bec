// SPDX-License-Identifier: Apache-2.0
//
// A flag that `coffer run` does not have: flags that people know from other programs (timeout, docker, bubblewrap), and
// what it has instead.
#pragma once

#include <string_view>

#include "base/result.h"

namespace coffer::cli {

// Its hint is "did you mean --wall TIME?" for "--timeout", why "--rm" is not needed, or the flag that is nearest.
Error UnknownRunFlag(std::string_view flag);

}  // namespace coffer::cli
