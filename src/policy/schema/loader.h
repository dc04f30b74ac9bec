// SPDX-License-Identifier: Apache-2.0
//
// Turns a JSON document into a SchemaProgram, or into the list of everything that is wrong with it.
//
// It goes on after a problem, so that one look at a manifest tells all; a program is only given out if there was none.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/schema/program.h"
#include "policy/schema/schema.h"

namespace coffer::policy {

inline constexpr size_t kMaxSchemaProblems = 50;

class SchemaLoader {
 public:
  // Null if there are problems.
  std::shared_ptr<const SchemaProgram> Load(const Json& document);
  std::vector<SchemaProblem>& problems() { return problems_; }

  // For the keywords (keywords.cc):
  void Problem(std::string_view at, std::string message, std::string hint = {});
  // The node of a subschema, at the JSON Pointer `at`.
  const SchemaNode* Subschema(const Json& schema, std::string at);
  void AddRef(SchemaNode& node, std::string_view target) { refs_.emplace_back(&node, target); }
  void AddAnchor(SchemaNode& node, std::string_view name, std::string_view at);
  std::optional<Pattern> MakePattern(std::string_view ecma, std::string_view at);

 private:
  void ResolveRefs();
  const SchemaNode* Target(const SchemaNode& from, std::string_view ref);
  void RefuseCircles();

  std::shared_ptr<SchemaProgram> program_ = std::make_shared<SchemaProgram>();
  std::vector<SchemaProblem> problems_;
  std::map<std::string, SchemaNode*, std::less<>> by_location_;
  std::map<std::string, SchemaNode*, std::less<>> by_anchor_;
  std::vector<std::pair<SchemaNode*, std::string>> refs_;
  size_t patterns_ = 0;
};

// Reads the keyword `name` into `node`; reports to `loader` what it cannot.
void LoadKeyword(SchemaLoader& loader, SchemaNode& node, const std::string& name,
                 const Json& value);
// What only shows when all keywords of a node are there.
void CheckKeywordsTogether(SchemaLoader& loader, const SchemaNode& node, const Json& schema);

}  // namespace coffer::policy
