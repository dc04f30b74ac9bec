// SPDX-License-Identifier: Apache-2.0
//
// `coffer call` inside a run that offers tools (`coffer run --tools`): the call goes to the socket of the run, as MCP.
//
// Here is no state directory, no manifest and no key; what the call may do is decided on the other side.
#pragma once

#include <string>

#include "call/verb_flags.h"

namespace coffer::cli {

// The socket that the environment names, or "": this is not inside such a run.
std::string ToolsSocket();

// The exit status: the tool's own, or as in exit_codes.h.
int CallFromInside(const std::string& socket, const call::VerbFlags& flags,
                   const std::string& args_json);

}  // namespace coffer::cli
