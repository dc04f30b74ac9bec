// SPDX-License-Identifier: Apache-2.0
//
// JSON values as JSON Schema sees them: 1 and 1.0 are the same number, objects have no order, strings are code points.
//
// Two values are equal if and only if their CanonicalText is. Everything but Measure expects a value that Measure has
// passed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/json.h"

namespace coffer::policy {

std::string CanonicalText(const Json& value);

// Characters of valid UTF-8.
size_t CodePoints(std::string_view text);

// What Measure counts, up to the bounds given to it.
struct Extent {
  size_t values = 0;
  size_t bytes = 0;  // in strings and names
};
enum class Misfit {
  kNone,
  kTooDeep,
  kTooManyValues,
  kTooManyBytes,
  kNotUtf8,
  kNotFinite,
  kNotJson
};
struct Measured {
  Misfit misfit = Misfit::kNone;
  Extent extent;
};
// Stops at the first thing that does not fit. Safe for any value.
Measured Measure(const Json& value, int max_depth, Extent most);
std::string_view MisfitText(Misfit misfit);

// "/a~1b" after `base`.
std::string PointerStep(std::string_view base, std::string_view name);
std::string PointerStep(std::string_view base, size_t index);

}  // namespace coffer::policy
