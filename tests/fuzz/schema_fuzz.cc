// SPDX-License-Identifier: Apache-2.0
//
// The first line is a schema, the rest a value. Whatever they are: no crash, no hang, the same answer twice, an error
// for everything that is refused; and `not` turns the answer around, unless the work was too much for both.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "policy/schema/schema.h"

namespace {

using coffer::Json;
using coffer::ParseJson;
using coffer::policy::kMaxSchemaErrors;
using coffer::policy::Schema;
using coffer::policy::SchemaError;
using coffer::policy::SchemaProblem;

void Must(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "%s\n", what);
    std::abort();
  }
}

// Too deep or too large, or too much work: such a value is refused by a schema and by its opposite.
bool OutOfBounds(const std::vector<SchemaError>& errors) {
  return errors.size() == 1 && errors[0].schema.empty();
}

void FuzzOne(std::string_view text) {
  const size_t line = text.find('\n');
  if (line == text.npos) {
    return;
  }
  const auto document = ParseJson(text.substr(0, line));
  const auto value = ParseJson(text.substr(line + 1));
  if (!document.ok() || !value.ok()) {
    return;
  }
  std::vector<SchemaProblem> problems;
  const auto schema = Schema::Compile(*document, &problems);
  Must(schema.ok() == problems.empty(), "problems and refusal disagree");
  if (!schema.ok()) {
    return;
  }
  const auto errors = schema->Validate(*value);
  Must(errors.size() <= kMaxSchemaErrors, "too many errors");
  Must(schema->Validate(*value).size() == errors.size(), "another answer the second time");
  // A reference would name another place inside `not`.
  const bool movable =
      text.substr(0, line).find("ref") == text.npos && text.find("$schema") == text.npos;
  const auto opposite = Schema::Compile(Json{{"not", *document}});
  if (movable && opposite.ok() && !OutOfBounds(errors)) {
    const auto reversed = opposite->Validate(*value);
    Must(OutOfBounds(reversed) || reversed.empty() != errors.empty(), "not is not not");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzOne({reinterpret_cast<const char*>(data), size});
  return 0;
}
