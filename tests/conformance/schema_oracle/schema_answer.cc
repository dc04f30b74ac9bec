// SPDX-License-Identifier: Apache-2.0
//
// Answers for the oracle test: reads lines of {"schema": ..., "instance": ...} and prints, for each, a line of
// {"loaded": bool, "valid": bool, "why": "..."}.
//
// The options make the validator wrong on purpose, by changing each schema before it is loaded. The test uses them to
// prove that it would notice: --drop KEYWORD, --rename KEYWORD=OTHER, --shift KEYWORD=NUMBER.
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "policy/schema/schema.h"

namespace {

using coffer::Json;

struct Bug {
  std::string keyword;
  std::string renamed;  // empty: dropped, unless shifted
  double shift = 0;
};

// These mean nothing without the other, and would be refused.
bool DependsOn(std::string_view name, std::string_view keyword) {
  return (keyword == "if" && (name == "then" || name == "else")) ||
         (keyword == "contains" && (name == "minContains" || name == "maxContains"));
}

// Names of properties in the generated schemas are never keywords, so every object may be treated as a schema.
Json Plant(const Json& schema, const Bug& bug) {
  if (schema.is_array()) {
    Json items = Json::array();
    for (const Json& item : schema) {
      items.push_back(Plant(item, bug));
    }
    return items;
  }
  if (!schema.is_object()) {
    return schema;
  }
  Json changed = Json::object();
  for (const auto& [name, value] : schema.items()) {
    if (name != bug.keyword) {
      const bool gone = bug.renamed.empty() && bug.shift == 0 && DependsOn(name, bug.keyword);
      if (!gone && !changed.contains(name)) {
        changed[name] = Plant(value, bug);
      }
    } else if (bug.shift != 0 && value.is_number()) {
      changed[name] = value.is_number_integer()
                          ? Json(value.get<int64_t>() + static_cast<int64_t>(bug.shift))
                          : Json(value.get<double>() + bug.shift);
    } else if (!bug.renamed.empty()) {
      changed[bug.renamed] = Plant(value, bug);
    }
  }
  return changed;
}

// The last schema, because several instances of one come in a row.
struct Last {
  Json schema;
  coffer::Result<coffer::policy::Schema> loaded = coffer::Refused("none", "");
};

void Answer(const std::string& line, const std::vector<Bug>& bugs, Last& last) {
  const auto request = coffer::ParseJson(line);
  Json answer = {{"loaded", false}, {"valid", false}, {"why", ""}};
  if (!request.ok()) {
    answer["why"] = request.error().message;
  } else {
    if (last.schema != request->at("schema")) {
      last.schema = request->at("schema");
      Json schema = last.schema;
      for (const Bug& bug : bugs) {
        schema = Plant(schema, bug);
      }
      last.loaded = coffer::policy::Schema::Compile(schema);
    }
    const auto& loaded = last.loaded;
    answer["loaded"] = loaded.ok();
    if (!loaded.ok()) {
      answer["why"] = loaded.error().message;
    } else {
      const auto errors = loaded->Validate(request->at("instance"));
      answer["valid"] = errors.empty();
      if (!errors.empty()) {
        answer["why"] =
            "\"" + errors[0].instance + "\" " + errors[0].schema + ": " + errors[0].message;
      }
    }
  }
  std::puts(coffer::PrintJson(answer).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Bug> bugs;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view option = argv[i];
    const std::string value = argv[i + 1];
    const size_t equals = value.find('=');
    Bug bug{.keyword = value.substr(0, equals)};
    if (option == "--rename" && equals != std::string::npos) {
      bug.renamed = value.substr(equals + 1);
    } else if (option == "--shift" && equals != std::string::npos) {
      bug.shift = std::strtod(value.c_str() + equals + 1, nullptr);
    } else if (option != "--drop") {
      std::fprintf(stderr, "schema_answer: %s: unknown option\n", argv[i]);
      return 2;
    }
    bugs.push_back(bug);
  }
  Last last;
  std::string line;
  for (int c = std::getchar(); c != EOF; c = std::getchar()) {
    if (c != '\n') {
      line.push_back(static_cast<char>(c));
    } else {
      Answer(line, bugs, last);
      line.clear();
    }
  }
  return 0;
}
