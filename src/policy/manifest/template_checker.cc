// SPDX-License-Identifier: Apache-2.0
#include "policy/manifest/template_checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"

namespace coffer::policy {
namespace {

std::string SchemaTypeOf(const Json& schema) {
  if (!schema.is_object() || !schema.contains("type") || !schema["type"].is_string()) {
    return {};
  }
  return schema["type"].get<std::string>();
}

}  // namespace

TemplateChecker::TemplateChecker(const Manifest& manifest, MistakeList& mistakes)
    : mistakes_(mistakes) {
  const Result<Json> schema = ParseJson(manifest.input_schema);
  known_ = schema.ok() && schema->is_object();
  if (!known_) {
    return;
  }
  const auto properties = schema->find("properties");
  if (properties == schema->end() || !properties->is_object()) {
    return;
  }
  const auto required = schema->find("required");
  for (const auto& property : properties->items()) {
    Parameter parameter{property.key(), SchemaTypeOf(property.value()), "", false};
    if (property.value().is_object() && property.value().contains("items")) {
      parameter.item_type = SchemaTypeOf(property.value()["items"]);
    }
    parameter.required = required != schema->end() && required->is_array() &&
                         std::any_of(required->begin(), required->end(), [&](const Json& name) {
                           return name.is_string() && name == property.key();
                         });
    parameters_.push_back(std::move(parameter));
  }
}

const TemplateChecker::Parameter* TemplateChecker::Find(std::string_view name) const {
  const auto found = std::find_if(parameters_.begin(), parameters_.end(),
                                  [&](const Parameter& p) { return p.name == name; });
  return found == parameters_.end() ? nullptr : &*found;
}

bool TemplateChecker::IsRequired(std::string_view name) const {
  const Parameter* parameter = Find(name);
  return !known_ || (parameter != nullptr && parameter->required);
}

std::string TemplateChecker::Suggest(std::string_view name) const {
  std::vector<std::string_view> names;
  names.reserve(parameters_.size());
  for (const Parameter& parameter : parameters_) {
    names.push_back(parameter.name);
  }
  const std::string_view nearest = NearestWord(name, names);
  return nearest.empty() ? "declare it in [input] schema, under properties"
                         : fmt::format("did you mean {}?", Printable(nearest));
}

std::optional<Word> TemplateChecker::Check(const TomlNode& node, std::string_view key,
                                           TemplatePlace place) {
  if (node.kind != TomlKind::kString) {
    mistakes_.Add(node.at,
                  fmt::format("{}: a string is wanted, not {}", key, TomlKindName(node.kind)),
                  "numbers too are written in quotes here");
    return std::nullopt;
  }
  Result<Word> word = ParseWord(node.text);
  if (!word.ok()) {
    mistakes_.Add(node.at, fmt::format("{}: {}", key, word.error().message), word.error().hint);
    return std::nullopt;
  }
  word->at = node.at;
  if (word->kind == WordKind::kAllArguments && place != TemplatePlace::kStdin) {
    mistakes_.Add(node.at, fmt::format("{}: {{@args}} is for stdin only", key));
  } else if (word->kind == WordKind::kSpread && place != TemplatePlace::kArgv) {
    mistakes_.Add(node.at, fmt::format("{}: {{{}...}} is for argv only", key, word->text));
  } else if (word->kind == WordKind::kParameter || word->kind == WordKind::kSpread) {
    CheckParameter(*word, key, place);
  }
  return std::move(*word);
}

void TemplateChecker::CheckParameter(const Word& word, std::string_view key, TemplatePlace place) {
  const Parameter* parameter = Find(word.text);
  if (parameter == nullptr) {
    if (known_) {
      mistakes_.Add(word.at, fmt::format("{}: there is no parameter \"{}\"", key, word.text),
                    Suggest(word.text));
    }
    return;
  }
  const bool array = parameter->type == "array";
  if (word.kind == WordKind::kSpread && !(array && parameter->item_type == "string")) {
    mistakes_.Add(word.at, fmt::format("{}: {} is not an array of strings", key, word.text),
                  "its schema must be { type = \"array\", items = { type = \"string\" } }");
  } else if (word.kind == WordKind::kParameter && place != TemplatePlace::kStdin &&
             (array || parameter->type == "object")) {
    mistakes_.Add(word.at, fmt::format("{}: {} is not a single value", key, word.text),
                  place == TemplatePlace::kArgv && array
                      ? fmt::format("write \"{{{}...}}\" for one word per element", word.text)
                      : "pass it through stdin");
  }
}

}  // namespace coffer::policy
