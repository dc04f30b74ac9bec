// SPDX-License-Identifier: Apache-2.0
//
// Tools that the caller has and the command had not: what a note says after a command that failed.
//
// An activated environment outside of the project and rustup's toolchains lie in the caller's home, which is private.
// The command then found another Python, or none. The notes change nothing of the call.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "call/run/prepare.h"
#include "call/run/run_request.h"

namespace coffer::call {

// Whether a word of the command is `program`, also in a line for the shell: `sh -c 'git describe || true'`.
bool NamesProgram(const std::vector<std::string>& command, std::string_view program);

std::vector<std::string> UnshownTools(const RunRequest& request, const Prepared& prepared);

}  // namespace coffer::call
