// SPDX-License-Identifier: Apache-2.0
//
// The rules about arrays: lengths, prefixItems, items, contains, uniqueItems.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "policy/schema/run.h"
#include "policy/schema/value.h"

namespace coffer::policy {

bool SchemaRun::Items(const SchemaNode& node, const Json& value, const SchemaPath& path,
                      Evaluated* seen, Errors* errors) {
  const ArrayRules& rules = *node.array;
  bool valid = true;
  if (rules.min_items && value.size() < *rules.min_items) {
    valid =
        Fail(node, "minItems", path, errors,
             fmt::format("must have at least {} items, not {}", *rules.min_items, value.size()));
  }
  if (rules.max_items && value.size() > *rules.max_items) {
    valid = Fail(node, "maxItems", path, errors,
                 fmt::format("must have at most {} items, not {}", *rules.max_items, value.size()));
  }
  if (!valid && errors == nullptr) {
    return false;
  }
  const size_t prefixed = std::min(value.size(), rules.prefix.size());
  const size_t ruled = rules.items != nullptr ? value.size() : prefixed;
  for (size_t i = 0; i < ruled; ++i) {
    const SchemaNode& rule = i < prefixed ? *rules.prefix[i] : *rules.items;
    if (!Check(rule, value[i], {.up = &path, .index = i}, nullptr, errors)) {
      valid = false;
      if (errors == nullptr || spent_) {
        return false;
      }
    }
    if (seen != nullptr) {
      seen->Mark(i);
    }
  }
  if (rules.contains != nullptr) {
    valid = Contains(node, value, path, seen, errors) && valid;
  }
  if (rules.unique && (valid || errors != nullptr)) {
    valid = Unique(node, value, path, errors) && valid;
  }
  return valid && !spent_;
}

bool SchemaRun::Contains(const SchemaNode& node, const Json& value, const SchemaPath& path,
                         Evaluated* seen, Errors* errors) {
  const ArrayRules& rules = *node.array;
  const uint64_t least = rules.min_contains.value_or(1);
  uint64_t count = 0;
  for (size_t i = 0; i < value.size(); ++i) {
    if (Check(*rules.contains, value[i], {.up = &path, .index = i}, nullptr, nullptr)) {
      ++count;
      if (seen != nullptr) {
        seen->Mark(i);
      }
    }
    if (spent_) {
      return false;
    }
    if (count >= least && !rules.max_contains && seen == nullptr) {
      return true;
    }
  }
  if (count < least) {
    return Fail(node, rules.min_contains ? "minContains" : "contains", path, errors,
                fmt::format("must hold at least {} matching items, not {}", least, count));
  }
  if (rules.max_contains && count > *rules.max_contains) {
    return Fail(
        node, "maxContains", path, errors,
        fmt::format("must hold at most {} matching items, not {}", *rules.max_contains, count));
  }
  return true;
}

bool SchemaRun::Unique(const SchemaNode& node, const Json& value, const SchemaPath& path,
                       Errors* errors) {
  std::vector<std::pair<std::string, size_t>> texts;
  texts.reserve(value.size());
  for (size_t i = 0; i < value.size(); ++i) {
    texts.emplace_back(CanonicalText(value[i]), i);
    if (!Spend(1 + texts.back().first.size() / 16)) {
      return false;
    }
  }
  std::sort(texts.begin(), texts.end());
  const auto twin = std::adjacent_find(
      texts.begin(), texts.end(), [](const auto& a, const auto& b) { return a.first == b.first; });
  return twin == texts.end() ||
         Fail(node, "uniqueItems", path, errors,
              fmt::format("must not hold the same item twice: {} and {} are equal", twin->second,
                          (twin + 1)->second));
}

}  // namespace coffer::policy
