// SPDX-License-Identifier: Apache-2.0
//
// `coffer mcp wrap` and `coffer mcp review`: other people's MCP servers.
#pragma once

#include <span>
#include <string_view>

namespace coffer::cli {

// The words after `wrap` and after `review`; the exit status.
int WrapVerb(std::span<const std::string_view> words);
int ReviewVerb(std::span<const std::string_view> words);

}  // namespace coffer::cli
