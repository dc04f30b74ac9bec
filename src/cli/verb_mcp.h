// SPDX-License-Identifier: Apache-2.0
//
// `coffer mcp`: the declared tools for an MCP client that starts this program and talks to it over stdin and stdout.
#pragma once

#include <span>
#include <string_view>

namespace coffer::cli {

int McpVerb(std::span<const std::string_view> words);

}  // namespace coffer::cli
