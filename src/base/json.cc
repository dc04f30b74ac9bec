// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <nlohmann/json.hpp>

#include "base/bounded_json.h"

namespace coffer {

Result<Json> ParseJson(std::string_view text) { return ParseBoundedJson(text, {}); }

std::string PrintJson(const Json& value, int indent) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace coffer
