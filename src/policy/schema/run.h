// SPDX-License-Identifier: Apache-2.0
//
// One run of a schema over one value: first only to know whether it is valid, then, if not, to say why.
//
// Every subschema that is applied and every byte that is looked at is a step, and the steps are counted: a run that
// has spent them ends, and its value counts as invalid, whatever `not` made of it. The value has passed Measure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "policy/schema/program.h"
#include "policy/schema/schema.h"

namespace coffer::policy {

// Where in the value we are, as a list on the stack; it becomes a JSON Pointer only for a message.
struct SchemaPath {
  const SchemaPath* up = nullptr;
  std::string_view name;  // a member, if data() is not null
  size_t index = 0;       // an item, otherwise
  std::string ToPointer() const;
};

// Which members or items were looked at by a rule, for unevaluatedProperties and unevaluatedItems.
class Evaluated {
 public:
  explicit Evaluated(size_t size) : marks_(size, false) {}
  void Mark(size_t index) { marks_[index] = true; }
  bool Has(size_t index) const { return marks_[index]; }
  void Merge(const Evaluated& other);

 private:
  std::vector<bool> marks_;
};

class SchemaRun {
 public:
  using Errors = std::vector<SchemaError>;

  // Whether `value` satisfies `node`. With `errors`, goes on after a failure and says what is wrong; without, stops
  // at the first. `seen` gets the evaluated members if it does; null if the caller does not need it.
  bool Check(const SchemaNode& node, const Json& value, const SchemaPath& path, Evaluated* seen,
             Errors* errors);
  bool spent() const { return spent_; }

 private:
  bool Values(const SchemaNode& node, const Json& value, const SchemaPath& path, Errors* errors);
  bool Numbers(const SchemaNode& node, const Json& value, const SchemaPath& path, Errors* errors);
  bool Strings(const SchemaNode& node, const Json& value, const SchemaPath& path, Errors* errors);
  bool Items(const SchemaNode& node, const Json& value, const SchemaPath& path, Evaluated* seen,
             Errors* errors);
  bool Contains(const SchemaNode& node, const Json& value, const SchemaPath& path, Evaluated* seen,
                Errors* errors);
  bool Unique(const SchemaNode& node, const Json& value, const SchemaPath& path, Errors* errors);
  bool Members(const SchemaNode& node, const Json& value, const SchemaPath& path, Evaluated* seen,
               Errors* errors);
  bool Member(const ObjectRules& rules, const std::string& name, const Json& member,
              const SchemaPath& path, bool& covered, Errors* errors);
  bool Present(const SchemaNode& node, const Json& value, const SchemaPath& path, Evaluated* seen,
               Errors* errors);
  bool InPlace(const SchemaNode& node, const Json& value, const SchemaPath& path, Evaluated* seen,
               Errors* errors);
  bool AnyOf(const SchemaNode& node, const Json& value, const SchemaPath& path, Evaluated* seen,
             Errors* errors);
  bool OneOf(const SchemaNode& node, const Json& value, const SchemaPath& path, Evaluated* seen,
             Errors* errors);
  bool Unevaluated(const SchemaNode& node, const Json& value, const SchemaPath& path,
                   Evaluated& seen, Errors* errors);

  bool Spend(uint64_t steps);
  // Whether the pattern is in the text; false, too, when that took all the steps there were.
  bool Found(const Pattern& pattern, std::string_view text);
  // Says it if there are errors to say it to. Always false.
  static bool Fail(const SchemaNode& node, std::string_view keyword, const SchemaPath& path,
                   Errors* errors, std::string message);

  uint64_t steps_ = 0;
  int frames_ = 0;
  bool spent_ = false;
};

}  // namespace coffer::policy
