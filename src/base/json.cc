// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

namespace coffer {
namespace {

// Follows the parser and remembers the keys of every open object, to notice depth and duplicates.
class Guard {
 public:
  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    if (depth > kMaxJsonDepth) {
      problem_ = "nested deeper than 64 levels";
      return false;
    }
    if (event == Event::object_start) {
      keys_.emplace_back();
    } else if (event == Event::object_end && !keys_.empty()) {
      keys_.pop_back();
    } else if (event == Event::key && !keys_.empty()) {
      if (!keys_.back().insert(parsed.get<std::string>()).second) {
        problem_ = "duplicate key \"" + parsed.get<std::string>() + "\"";
      }
    }
    return true;
  }
  const std::string& problem() const { return problem_; }

 private:
  std::vector<std::set<std::string>> keys_;
  std::string problem_;
};

}  // namespace

Result<Json> ParseJson(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) {
    return Refused("json.parse", "not JSON: a NUL byte");  // the parser would take it for the end
  }
  Guard guard;
  Json value;
  try {
    value = Json::parse(text, std::ref(guard), /*allow_exceptions=*/true);
  } catch (const std::exception& failure) {
    return Refused("json.parse", std::string("not JSON: ") + failure.what());
  }
  if (!guard.problem().empty() || value.is_discarded()) {
    return Refused("json.parse", "not acceptable JSON: " + guard.problem());
  }
  return value;
}

std::string PrintJson(const Json& value, int indent) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace coffer
