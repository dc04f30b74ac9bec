// SPDX-License-Identifier: Apache-2.0
//
// The output of `coffer call` at the end of a call: the answer as JSON or an error with its hint, notes about what the
// network refused, truncated output and removed files, and the exit status.
#pragma once

#include "call/tool_call.h"
#include "call/tool_shelf.h"

namespace coffer::cli {

// The tool's own; 120 refused, 122 a limit was breached, 125 Cofferdam failed.
int ExitStatus(const call::ToolReply& reply);

// To stdout as one JSON document, with the names of POST /v1/calls; or to stderr, where the tool's own output has gone
// already.
void PrintReply(const call::ToolReply& reply, const call::ToolRequest& request,
                const call::ToolShelf& shelf, bool json);

}  // namespace coffer::cli
