// SPDX-License-Identifier: Apache-2.0
//
// A declared tool as MCP describes tools, and the answer of a call as MCP describes results: the
// manifest decides, and the text is written for a model that has to correct itself from it.
#pragma once

#include <span>

#include "audit/receipt.h"
#include "base/json.h"
#include "base/json_pieces.h"
#include "call/tool_call.h"
#include "policy/manifest/manifest.h"

namespace coffer::gateway {

// name, title, description, inputSchema, outputSchema, annotations. `project` is the directory of
// the host that stands in for the session's files; empty: none.
Json McpToolJson(const policy::Manifest& manifest, const std::string& project = "");

// content (with a link for each file that the call exported), structuredContent (which fits the
// outputSchema above), isError: the members of a result (McpResultForm). Output stands in two of
// them, and is held once.
JsonPieces McpToolResult(call::ToolReply reply, std::span<const audit::ExportedFile> exported = {});

}  // namespace coffer::gateway
