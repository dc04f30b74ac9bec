// SPDX-License-Identifier: Apache-2.0
//
// The verbs below `coffer mcp`: wrap and review, for other people's MCP servers, and install.
#pragma once

#include <span>
#include <string_view>

namespace coffer::cli {

// Each takes the words after its name, and returns the exit status.
int WrapVerb(std::span<const std::string_view> words);
int ReviewVerb(std::span<const std::string_view> words);
int InstallVerb(std::span<const std::string_view> words);

}  // namespace coffer::cli
