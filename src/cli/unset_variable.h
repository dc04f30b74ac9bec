// SPDX-License-Identifier: Apache-2.0
//
// A note for a command that failed and that names a variable of the caller's environment, such as OPENAI_API_KEY. A boundary
// gets none of the caller's variables, so the command did not find it.
#pragma once

#include <string>

#include "call/run/run_request.h"

namespace coffer::cli {

// A sentence about the first variable of this process that the script or the command names, and that --env does not set;
// empty if there is none. No value is shown. For a command that failed.
std::string UnsetVariableNote(const call::RunRequest& request);

}  // namespace coffer::cli
