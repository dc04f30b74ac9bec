// SPDX-License-Identifier: Apache-2.0
//
// A script that reads OPENAI_API_KEY, which its caller has set. Nothing of the caller's environment is passed on.
#pragma once

#include <string>

#include "call/run/run_request.h"

namespace coffer::cli {

// A sentence about the first variable of this process that the script or the command names, and that --env does not set;
// empty if there is none. No value is shown. For a command that failed.
std::string UnsetVariableNote(const call::RunRequest& request);

}  // namespace coffer::cli
