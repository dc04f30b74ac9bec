// SPDX-License-Identifier: Apache-2.0
//
// A declared tool as MCP describes tools, and the answer of a call as MCP describes results: the manifest decides, and the
// text is written for a model that has to correct itself from it.
#pragma once

#include "base/json.h"
#include "call/tool_call.h"
#include "policy/manifest/manifest.h"

namespace coffer::gateway {

// name, title, description, inputSchema, outputSchema, annotations.
Json McpToolJson(const policy::Manifest& manifest);

// content, structuredContent (which fits the outputSchema above), isError.
Json McpResultJson(const call::ToolReply& reply);

}  // namespace coffer::gateway
