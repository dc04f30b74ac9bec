// SPDX-License-Identifier: Apache-2.0
//
// A schema after loading: one node for each subschema, every $ref a pointer, every number, pattern and name ready to
// compare. Made by loader.h, read by run.h, never changed in between.
//
// Invariant: following the in-place edges (ref, all_of, any_of, one_of, not_, if_, then_, else_, dependent) from any
// node ends, because the loader refuses circles among them. Edges to members and items may go in circles: the value
// that is checked gets smaller there.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policy/schema/format.h"
#include "policy/schema/number.h"
#include "policy/schema/pattern.h"

namespace coffer::policy {

struct SchemaNode;
using NodeList = std::vector<const SchemaNode*>;
template <typename T>
using ByName = std::map<std::string, T, std::less<>>;

enum SchemaType : uint8_t {
  kTypeNull = 1,
  kTypeBoolean = 2,
  kTypeInteger = 4,
  kTypeFraction = 8,  // "number" is both
  kTypeString = 16,
  kTypeArray = 32,
  kTypeObject = 64,
};
inline constexpr uint8_t kAnyType = 127;

struct NumberRules {
  std::optional<Number> minimum, maximum, above, below, multiple_of;  // above, below: exclusive
};

struct StringRules {
  std::optional<uint64_t> min_length, max_length;
  std::optional<Pattern> pattern;
  const Format* format = nullptr;
};

struct ArrayRules {
  std::optional<uint64_t> min_items, max_items, min_contains, max_contains;
  bool unique = false;
  NodeList prefix;
  const SchemaNode* items = nullptr;
  const SchemaNode* contains = nullptr;
};

struct ObjectRules {
  std::optional<uint64_t> min_properties, max_properties;
  std::vector<std::string> required;
  ByName<std::vector<std::string>> dependent_required;
  ByName<const SchemaNode*> properties;
  std::vector<std::pair<Pattern, const SchemaNode*>> patterns;
  const SchemaNode* additional = nullptr;
  const SchemaNode* names = nullptr;
};

// An enum or a const: the canonical texts, sorted.
struct ValueRule {
  std::vector<std::string> texts;
  uint8_t types = 0;
  std::string shown;    // "one of \"fast\", \"slow\"": the manifest's own words, bounded
  bool single = false;  // it was a const
};

struct SchemaNode {
  std::string location;         // JSON Pointer in the schema
  std::optional<bool> verdict;  // the schemas `true` and `false`; nothing else is set then
  std::optional<uint8_t> types;
  std::optional<ValueRule> enumeration, constant;
  std::unique_ptr<NumberRules> number;
  std::unique_ptr<StringRules> string;
  std::unique_ptr<ArrayRules> array;
  std::unique_ptr<ObjectRules> object;
  const SchemaNode* ref = nullptr;
  NodeList all_of, any_of, one_of;
  const SchemaNode* not_ = nullptr;
  const SchemaNode* if_ = nullptr;
  const SchemaNode* then_ = nullptr;
  const SchemaNode* else_ = nullptr;
  ByName<const SchemaNode*> dependent;
  const SchemaNode* unevaluated_items = nullptr;
  const SchemaNode* unevaluated_properties = nullptr;
};

struct SchemaProgram {
  std::deque<SchemaNode> nodes;  // a deque: nodes point at each other
  const SchemaNode* root = nullptr;
};

// The bit of a value's type; an integer that is written 1.0 is an integer.
uint8_t TypeOf(const Json& value);
// "an integer or a string"
std::string TypeText(uint8_t types);

}  // namespace coffer::policy
