// SPDX-License-Identifier: Apache-2.0
//
// The one reader of JSON that comes from outside: one pass that builds the value and stops at the first bound it meets.
//
// Names of an object are looked up in a set while they are read, so that an object of ten thousand
// members takes no longer than its text (the library alone compares each name with all before it).
#pragma once

#include <cstddef>
#include <limits>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace coffer {

struct JsonBounds {
  size_t depth = static_cast<size_t>(kMaxJsonDepth);
  size_t values = std::numeric_limits<size_t>::max();  // objects and lists count as one each
  // An integer that needs more than 64 bits would silently become another number.
  bool exact_integers = false;
};

// Errors: json.syntax, json.number, json.too_deep, json.too_many, json.duplicate. Of the input only
// a key that appears twice is shown.
Result<Json> ParseBoundedJson(std::string_view text, const JsonBounds& bounds);

}  // namespace coffer
