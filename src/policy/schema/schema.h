// SPDX-License-Identifier: Apache-2.0
//
// A Schema decides whether a JSON value has the shape a tool declared: JSON Schema 2020-12, our own validator.
//
// What it does not implement, it refuses to load: an unknown keyword, another dialect, a remote
// $ref, a pattern or a format we cannot check exactly. A rule in a schema is enforced or is an
// error, never ignored. Both sides are bounded (the constants below), so a hostile schema or value
// costs time and memory that are known beforehand. Pure: no I/O, no mutable globals; a loaded
// Schema may be used from several threads at once. Messages of Validate never quote what the value
// holds, only names of its properties. It says nothing about the meaning of a value: a string that
// passes `format: ipv4` may still be an address that a tool must not reach. docs/SCHEMA.md lists
// the keywords.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace coffer::policy {

// Depth of nesting, of schemas and of values alike: what ParseJson allows.
inline constexpr int kMaxSchemaDepth = kMaxJsonDepth;
// A schema: JSON values in it, bytes in its strings, patterns.
inline constexpr size_t kMaxSchemaValues = 10'000;
inline constexpr size_t kMaxSchemaBytes = size_t{1} << 20;
inline constexpr size_t kMaxSchemaPatterns = 200;
// A value that is checked: JSON values in it, bytes in its strings.
inline constexpr size_t kMaxInstanceValues = 250'000;
inline constexpr size_t kMaxInstanceBytes = size_t{16} << 20;
// The work of one Validate: a step is about one subschema applied to one value, or 256 bytes looked at. All of it takes
// well under a second; a value that needs more is refused.
inline constexpr uint64_t kMaxSchemaSteps = 2'000'000;
// Subschemas applied inside one another, through $ref too: bounds the stack.
inline constexpr int kMaxSchemaFrames = 512;
// What Validate reports at most.
inline constexpr size_t kMaxSchemaErrors = 16;

// One thing that is wrong with a value.
struct SchemaError {
  std::string
      instance;  // JSON Pointer to the value, "" is all of it; its names are hostile text, cut at 512 bytes
  std::string schema;   // JSON Pointer to the rule: "/properties/code/maxLength"
  std::string message;  // "is longer than 65536 characters (it has 70000)": safe to print
};

// One thing that is wrong with a schema.
struct SchemaProblem {
  std::string at;       // JSON Pointer into the schema
  std::string message;  // what is wrong, safe to print
  std::string hint;     // what to write instead; may be empty
};

struct SchemaProgram;  // policy/schema/program.h

class Schema {
 public:
  // The error is the first problem, and how many more there are; `problems`, if given, gets all of them.
  static Result<Schema> Compile(const Json& document,
                                std::vector<SchemaProblem>* problems = nullptr);

  // Nothing if the value is valid; otherwise at least one error, in the order of the schema.
  [[nodiscard]] std::vector<SchemaError> Validate(const Json& value) const;

 private:
  explicit Schema(std::shared_ptr<const SchemaProgram> program) : program_(std::move(program)) {}
  std::shared_ptr<const SchemaProgram> program_;
};

}  // namespace coffer::policy
