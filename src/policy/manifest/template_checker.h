// SPDX-License-Identifier: Apache-2.0
//
// Checks the templates of [run] against the parameters that [input] declares. Internal to run.cc.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/manifest/manifest.h"
#include "policy/manifest/toml_tree.h"

namespace coffer::policy {

enum class TemplatePlace : uint8_t { kArgv, kEnv, kStdin };

class TemplateChecker {
 public:
  // Reads manifest.input_schema. Where [input] itself is wrong, every parameter counts as known: one mistake is enough.
  TemplateChecker(const Manifest& manifest, MistakeList& mistakes);

  // A string of the file as a word; nothing if it is none. `key` is for messages.
  std::optional<Word> Check(const TomlNode& node, std::string_view key, TemplatePlace place);

  bool Knows(std::string_view name) const { return !known_ || Find(name) != nullptr; }
  bool IsRequired(std::string_view name) const;
  // What to do about a parameter that the schema does not declare.
  std::string Suggest(std::string_view name) const;

 private:
  struct Parameter {
    std::string name;
    std::string type;       // "" if the schema does not say
    std::string item_type;  // of an array
    bool required = false;
  };
  const Parameter* Find(std::string_view name) const;
  void CheckParameter(const Word& word, std::string_view key, TemplatePlace place);

  MistakeList& mistakes_;
  bool known_ = false;
  std::vector<Parameter> parameters_;
};

}  // namespace coffer::policy
