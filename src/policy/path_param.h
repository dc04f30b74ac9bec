// SPDX-License-Identifier: Apache-2.0
//
// A parameter that names a file is resolved beneath the place it belongs to, or refused.
//
// Lexically: the result begins with the place and has no "..", so it names nothing outside the place and is never an
// option. Links inside the place are not resolved here. The boundary shows only its own places, so a link leads to
// nothing outside either.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "policy/manifest/manifest.h"

namespace coffer::policy {

// "a/b.txt" beneath "/data" is "/data/a/b.txt"; "." is "/data". "." and "//" inside are dropped. Refused: "",
// absolute paths, "..", control characters and NUL, backslashes, "~" at the beginning, components over 255 and paths
// over 4000 bytes.
Result<std::string> ResolveBeneath(std::string_view place, std::string_view value);

// Replaces the values of all path parameters in `args`, strings and arrays of strings. The place itself cannot be
// written.
Status ResolvePaths(const std::vector<PathParameter>& paths, Json& args);

}  // namespace coffer::policy
