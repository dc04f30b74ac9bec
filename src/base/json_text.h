// SPDX-License-Identifier: Apache-2.0
//
// A text as a JSON string, byte for byte what PrintJson makes of it, and fast for any text.
//
// The library prints every control character with snprintf. A payload may print a megabyte of them,
// and then that was two thirds of what its answer cost.
#pragma once

#include <string>
#include <string_view>

namespace coffer {

// With its quotes, at the end of `out`. What is not UTF-8 is replaced, as everywhere.
void AppendJsonText(std::string_view text, std::string* out);

}  // namespace coffer
