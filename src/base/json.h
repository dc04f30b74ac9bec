// SPDX-License-Identifier: Apache-2.0
//
// JSON, with the two guards that nlohmann's library needs: parsing stops at a depth (deeper documents crash when
// they are copied or printed), and printing replaces invalid UTF-8 (it throws otherwise). Nothing here throws.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace coffer {

using Json = nlohmann::ordered_json;

inline constexpr int kMaxJsonDepth = 64;

// Refuses anything that is not one JSON document, deeper than kMaxJsonDepth, or with a duplicate key.
Result<Json> ParseJson(std::string_view text);

// `indent` of -1 is one line.
std::string PrintJson(const Json& value, int indent = -1);

}  // namespace coffer
