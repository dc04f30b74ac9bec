// SPDX-License-Identifier: Apache-2.0
//
// The rules about objects: how many members, which, of what shape, and what follows from a member being there.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "policy/manifest/mistake.h"
#include "policy/schema/run.h"

namespace coffer::policy {
namespace {

// Finds names in an object. Ours keep their order and are searched from the front, which a large one makes slow.
class Names {
 public:
  explicit Names(const Json::object_t& members) {
    sorted_.reserve(members.size());
    for (const auto& [name, member] : members) {
      sorted_.emplace_back(name);
    }
    std::sort(sorted_.begin(), sorted_.end());
  }
  bool Has(std::string_view name) const {
    return std::binary_search(sorted_.begin(), sorted_.end(), name);
  }

 private:
  std::vector<std::string_view> sorted_;
};

// The names that the schema knows are the manifest's own, and bounded like everything that is told.
std::string UnknownText(const ObjectRules& rules, const std::string& name) {
  constexpr size_t kMaxShown = 600;
  std::vector<std::string_view> known;
  std::string shown;
  for (const auto& [allowed, node] : rules.properties) {
    known.emplace_back(allowed);
    if (shown.size() < kMaxShown) {
      shown += (shown.empty() ? "" : ", ") + Printable(allowed);
    } else if (!shown.ends_with("...")) {
      shown += ", ...";
    }
  }
  const std::string_view nearest = NearestWord(name, known);
  if (!nearest.empty()) {
    return fmt::format("is not allowed here; did you mean {}?", Printable(nearest));
  }
  return shown.empty() ? "is not allowed here; there are no members"
                       : fmt::format("is not allowed here; the members are {}", shown);
}

}  // namespace

bool SchemaRun::Members(const SchemaNode& node, const Json& value, const SchemaPath& path,
                        Evaluated* seen, Errors* errors) {
  const ObjectRules& rules = *node.object;
  const auto& members = value.get_ref<const Json::object_t&>();
  bool valid = true;
  if (rules.min_properties && members.size() < *rules.min_properties) {
    valid = Fail(node, "minProperties", path, errors,
                 fmt::format("must have at least {} members, not {}", *rules.min_properties,
                             members.size()));
  }
  if (rules.max_properties && members.size() > *rules.max_properties) {
    valid = Fail(
        node, "maxProperties", path, errors,
        fmt::format("must have at most {} members, not {}", *rules.max_properties, members.size()));
  }
  if (!rules.required.empty() || !rules.dependent_required.empty()) {
    if (!Spend(2 * members.size() + rules.required.size())) {
      return false;
    }
    const Names names(members);
    const auto need = [&](std::string_view keyword, const std::string& name,
                          std::string_view because) {
      if (!names.Has(name)) {
        valid = Fail(node, keyword, path, errors,
                     errors == nullptr
                         ? ""
                         : fmt::format("must have a member \"{}\"{}", Printable(name), because));
      }
    };
    for (const std::string& name : rules.required) {
      need("required", name, "");
    }
    for (const auto& [trigger, needed] : rules.dependent_required) {
      if (!Spend(1)) {
        return false;
      }
      if (names.Has(trigger)) {
        for (const std::string& name : needed) {
          need("dependentRequired", name,
               errors == nullptr ? "" : fmt::format(", because it has \"{}\"", Printable(trigger)));
        }
      }
    }
  }
  if (!valid && errors == nullptr) {
    return false;
  }
  size_t index = 0;
  for (const auto& [name, member] : members) {
    bool covered = false;
    if (!Member(rules, name, member, path, covered, errors)) {
      valid = false;
      if (errors == nullptr || spent_) {
        return false;
      }
    }
    if (covered && seen != nullptr) {
      seen->Mark(index);
    }
    ++index;
  }
  return valid;
}

bool SchemaRun::Member(const ObjectRules& rules, const std::string& name, const Json& member,
                       const SchemaPath& path, bool& covered, Errors* errors) {
  if (!Spend(1 + name.size() / 256)) {
    return false;
  }
  bool valid = true;
  const SchemaPath below{.up = &path, .name = name};
  if (rules.names != nullptr) {
    valid = Check(*rules.names, Json(name), below, nullptr, errors);
  }
  if (const auto found = rules.properties.find(name); found != rules.properties.end()) {
    covered = true;
    valid = (valid || errors != nullptr) && Check(*found->second, member, below, nullptr, errors) &&
            valid;
  }
  for (const auto& [pattern, node] : rules.patterns) {
    if ((!valid && errors == nullptr) || spent_) {
      return false;
    }
    if (Found(pattern, name)) {
      covered = true;
      valid = Check(*node, member, below, nullptr, errors) && valid;
    }
  }
  if (!covered && rules.additional != nullptr) {
    covered = true;
    if (errors != nullptr && rules.additional->verdict == false) {
      if (errors->size() < kMaxSchemaErrors) {
        errors->push_back(
            {below.ToPointer(), rules.additional->location, UnknownText(rules, name)});
      }
      return false;
    }
    valid = (valid || errors != nullptr) &&
            Check(*rules.additional, member, below, nullptr, errors) && valid;
  }
  return valid && !spent_;
}

bool SchemaRun::Present(const SchemaNode& node, const Json& value, const SchemaPath& path,
                        Evaluated* seen, Errors* errors) {
  const auto& members = value.get_ref<const Json::object_t&>();
  if (!Spend(2 * members.size())) {
    return false;
  }
  const Names names(members);
  bool valid = true;
  for (const auto& [trigger, dependent] : node.dependent) {
    if (names.Has(trigger) && !Check(*dependent, value, path, seen, errors)) {
      valid = false;
      if (errors == nullptr || spent_) {
        return false;
      }
    }
  }
  return valid;
}

}  // namespace coffer::policy
