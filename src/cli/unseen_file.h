// SPDX-License-Identifier: Apache-2.0
//
// `coffer run -- python3 app.py`: the most usual first mistake. The file lies beside the caller, and the command, which
// starts in an empty /workspace, does not see it.
#pragma once

#include <string>
#include <string_view>

#include "call/run/run_request.h"

namespace coffer::cli {

// A sentence about the first argument that names a file or directory beside the caller and was not brought in; empty if
// there is none. For a command that failed.
std::string UnseenFileNote(const call::RunRequest& request);

// Whether an input has that name: inputs are copied to /in and linked in /workspace under their own names.
bool IsBroughtIn(const call::RunRequest& request, std::string_view name);

}  // namespace coffer::cli
