// SPDX-License-Identifier: Apache-2.0
//
// Looks at --tools and the flags that belong to it, so that a mistake is found before anything starts.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "call/run/run_request.h"

namespace coffer::cli {

// kRefused with a hint for too much, or for a flag of --tools without it. `given` are all flags.
// Each tool is listed once afterwards.
Status CheckToolFlags(const std::vector<std::string_view>& given, call::RunRequest& request);

}  // namespace coffer::cli
