// SPDX-License-Identifier: Apache-2.0
//
// Text that a stranger wrote and a model or a person will read: names and descriptions of another MCP server's tools.
//
// A reader must see all of it. Characters that cannot be seen hide instructions from the person who
// reviews a description and not from the model that reads it: control characters, marks of
// direction, joiners and spaces of no width, tags, variation selectors beyond the common ones,
// private use. Letters of all languages stay.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace coffer::gateway {

// Without what cannot be seen, and cut at `most` bytes with "...". Line ends and tabs stay.
std::string VisibleText(std::string_view text, size_t most);

// True if VisibleText would change nothing but its length.
bool IsVisibleText(std::string_view text);

}  // namespace coffer::gateway
