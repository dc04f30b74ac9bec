// SPDX-License-Identifier: Apache-2.0
#include "audit/canonical_fields.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace coffer::audit {
namespace {

constexpr std::string_view kNull = "null";

// The end of the string that begins at `at`, behind its last quote; npos: it has none.
size_t EndOfString(std::string_view text, size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

// The end of the value that begins at `at`: the comma or bracket behind it.
size_t EndOfValue(std::string_view text, size_t at) {
  for (int depth = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"') {
      at = EndOfString(text, at);
      continue;
    }
    if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (depth == 0) {
        return at;
      }
      --depth;
    } else if (c == ',' && depth == 0) {
      return at;
    }
    ++at;
  }
  return std::string_view::npos;
}

bool IsPlain(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
}

}  // namespace

CanonicalFields::CanonicalFields(std::string_view object) {
  if (!object.starts_with('{')) {
    return;
  }
  for (size_t at = 1; at < object.size() && object[at] == '"';) {
    const size_t colon = EndOfString(object, at);
    if (colon >= object.size() || object[colon] != ':') {
      return;
    }
    const size_t end = EndOfValue(object, colon + 1);
    if (end >= object.size()) {
      return;
    }
    members_.emplace_back(object.substr(at + 1, colon - at - 2),
                          object.substr(colon + 1, end - colon - 1));
    at = end + 1;
  }
}

std::string_view CanonicalFields::At(std::string_view name) const {
  const auto found = std::find_if(members_.begin(), members_.end(),
                                  [&](const auto& member) { return member.first == name; });
  return found == members_.end() ? kNull : found->second;
}

std::string_view CanonicalFields::At(std::string_view name, std::string_view inner) const {
  return CanonicalFields(At(name)).At(inner);
}

std::optional<uint64_t> CanonicalFields::CountOf(std::string_view name) const {
  const std::string_view array = At(name);
  if (!array.starts_with('[')) {
    return std::nullopt;
  }
  uint64_t count = 0;
  for (size_t at = 1; at < array.size() && array[at] != ']'; ++at) {
    ++count;
    at = EndOfValue(array, at);
    if (at >= array.size()) {
      return std::nullopt;
    }
    if (array[at] == ']') {
      break;
    }
  }
  return count;
}

bool Says(std::string_view json, std::string_view value) {
  if (value.empty()) {
    return json == kNull || json == "\"\"";
  }
  if (IsPlain(value)) {
    return json.size() == value.size() + 2 && json.front() == '"' && json.back() == '"' &&
           json.substr(1, value.size()) == value;
  }
  return json == PrintJson(Json(value));
}

}  // namespace coffer::audit
