// SPDX-License-Identifier: Apache-2.0
//
// Every keyword that a schema may use, and what is said about those it may not.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "policy/schema/loader.h"
#include "policy/schema/value.h"

namespace coffer::policy {
namespace {

constexpr std::string_view kDialect = "https://json-schema.org/draft/2020-12/schema";

// What a keyword's reader works on.
struct Use {
  SchemaLoader& loader;
  SchemaNode& node;
  const Json& value;
  const std::string& at;  // JSON Pointer of the keyword

  void Problem(std::string message, std::string hint = {}) const {
    loader.Problem(at, std::move(message), std::move(hint));
  }
  NumberRules& number() const { return Made(node.number); }
  StringRules& string() const { return Made(node.string); }
  ArrayRules& array() const { return Made(node.array); }
  ObjectRules& object() const { return Made(node.object); }

 private:
  template <typename T>
  static T& Made(std::unique_ptr<T>& part) {
    if (!part) {
      part = std::make_unique<T>();
    }
    return *part;
  }
};

std::optional<Number> ReadNumber(const Use& use) {
  if (!use.value.is_number()) {
    use.Problem("must be a number");
    return std::nullopt;
  }
  return Number(use.value);
}

std::optional<uint64_t> ReadCount(const Use& use) {
  if (!use.value.is_number() || !Number(use.value).integer() ||
      Number(use.value).Compare(Number(Json(0))) < 0) {
    use.Problem("must be a whole number, 0 or more");
    return std::nullopt;
  }
  if (use.value.is_number_float()) {
    const auto real = use.value.get<double>();
    return real < 18446744073709551616.0 ? static_cast<uint64_t>(real)
                                         : std::numeric_limits<uint64_t>::max();
  }
  return use.value.get<uint64_t>();
}

std::optional<bool> ReadBool(const Use& use) {
  if (!use.value.is_boolean()) {
    use.Problem("must be true or false");
    return std::nullopt;
  }
  return use.value.get<bool>();
}

const std::string* ReadText(const Use& use) {
  if (!use.value.is_string()) {
    use.Problem("must be a string");
    return nullptr;
  }
  return &use.value.get_ref<const std::string&>();
}

std::vector<std::string> ReadNames(const Use& use, const Json& value, const std::string& at) {
  std::vector<std::string> names;
  const bool fits =
      value.is_array() &&
      std::all_of(value.begin(), value.end(), [](const Json& item) { return item.is_string(); });
  if (!fits) {
    use.loader.Problem(at, "must be a list of strings");
    return names;
  }
  for (const Json& item : value) {
    names.push_back(item.get<std::string>());
  }
  std::vector<std::string> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    use.loader.Problem(at, "names something twice");
  }
  return names;
}

NodeList ReadSchemas(const Use& use) {
  NodeList nodes;
  if (!use.value.is_array() || use.value.empty()) {
    use.Problem("must be a list of schemas, with one at least");
    return nodes;
  }
  for (size_t i = 0; i < use.value.size(); ++i) {
    nodes.push_back(use.loader.Subschema(use.value[i], PointerStep(use.at, i)));
  }
  return nodes;
}

const SchemaNode* ReadSchema(const Use& use) {
  if (use.value.is_array()) {
    use.Problem("must be one schema, not a list",
                use.at.ends_with("/items") ? "a list is written prefixItems" : "");
    return nullptr;
  }
  return use.loader.Subschema(use.value, use.at);
}

// Calls each(name, value, pointer) for the members of an object.
template <typename Each>
void ReadMembers(const Use& use, const Each& each) {
  if (!use.value.is_object()) {
    use.Problem("must be an object");
    return;
  }
  for (const auto& [name, member] : use.value.get_ref<const Json::object_t&>()) {
    each(name, member, PointerStep(use.at, name));
  }
}

void ReadSchemasByName(const Use& use, ByName<const SchemaNode*>& into) {
  ReadMembers(use, [&](const std::string& name, const Json& member, std::string at) {
    into[name] = use.loader.Subschema(member, std::move(at));
  });
}

void ReadType(const Use& use) {
  constexpr std::array<std::pair<std::string_view, uint8_t>, 7> kTypes = {
      {{"null", kTypeNull},
       {"boolean", kTypeBoolean},
       {"integer", kTypeInteger},
       {"number", kTypeInteger | kTypeFraction},
       {"string", kTypeString},
       {"array", kTypeArray},
       {"object", kTypeObject}}};
  const Json list = use.value.is_string() ? Json::array({use.value}) : use.value;
  uint8_t types = 0;
  for (const std::string& name : ReadNames(use, list, use.at)) {
    const auto* const found =
        std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& t) { return t.first == name; });
    if (found == kTypes.end()) {
      use.Problem(fmt::format("\"{}\" is not a type", Printable(name)),
                  "one or more of null, boolean, integer, number, string, array, object");
      return;
    }
    types |= found->second;
  }
  if (list.is_array() && list.empty()) {
    use.Problem("names no type, so nothing could pass");
  }
  use.node.types = types;
}

// For the message to a value that is none of them: a model that reads it can correct itself.
std::string ShownValues(const Json& values) {
  constexpr size_t kMaxShown = 600;
  std::string shown;
  for (const Json& value : values) {
    const std::string text = Printable(PrintJson(value));
    if (!shown.empty() && shown.size() + text.size() > kMaxShown) {
      shown += ", ...";
      break;
    }
    shown += (shown.empty() ? "" : ", ") + text;
  }
  return (values.size() == 1 ? "" : "one of ") + shown;
}

ValueRule MakeValueRule(const Json& values, bool single) {
  ValueRule rule{.shown = ShownValues(values), .single = single};
  for (const Json& value : values) {
    rule.texts.push_back(CanonicalText(value));
    rule.types |= TypeOf(value);
  }
  std::sort(rule.texts.begin(), rule.texts.end());
  return rule;
}

void ReadEnum(const Use& use) {
  if (!use.value.is_array() || use.value.empty()) {
    use.Problem("must be a list of values, with one at least");
    return;
  }
  use.node.enumeration = MakeValueRule(use.value, false);
}

void ReadDialect(const Use& use) {
  const std::string* const text = ReadText(use);
  if (text == nullptr) {
    return;
  }
  if (use.at != "/$schema") {
    use.Problem("belongs at the top of the schema only");
  } else if (*text != kDialect && *text != std::string(kDialect) + "#") {
    use.Problem("is not JSON Schema 2020-12",
                fmt::format("write \"{}\", or leave it out", kDialect));
  }
}

void ReadAnchor(const Use& use) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  const std::string* const text = ReadText(use);
  if (text == nullptr) {
    return;
  }
  const bool good = !text->empty() && std::all_of(text->begin(), text->end(), fits) &&
                    text->front() != '-' && text->front() != '.' &&
                    !(text->front() >= '0' && text->front() <= '9');
  if (!good) {
    use.Problem("must be a plain name: letters, digits, - _ . and first a letter or _");
    return;
  }
  use.loader.AddAnchor(use.node, *text, use.at);
}

void ReadFormat(const Use& use) {
  if (const std::string* const text = ReadText(use)) {
    use.string().format = FindFormat(*text);
    if (use.string().format == nullptr) {
      use.Problem(fmt::format("the format \"{}\" is not implemented, so nothing would check it",
                              Printable(*text)),
                  fmt::format("one of {}, or a pattern", FormatNames()));
    }
  }
}

void ReadMultipleOf(const Use& use) {
  const std::optional<Number> number = ReadNumber(use);
  if (number && number->Compare(Number(Json(0))) <= 0) {
    use.Problem("must be above 0");
    return;
  }
  use.number().multiple_of = number;
}

void ReadPattern(const Use& use) {
  if (const std::string* const text = ReadText(use)) {
    use.string().pattern = use.loader.MakePattern(*text, use.at);
  }
}

void ReadPatternProperties(const Use& use) {
  ReadMembers(use, [&](const std::string& ecma, const Json& member, std::string at) {
    std::optional<Pattern> pattern = use.loader.MakePattern(ecma, at);
    const SchemaNode* const node = use.loader.Subschema(member, std::move(at));
    if (pattern) {
      use.object().patterns.emplace_back(*std::move(pattern), node);
    }
  });
}

void ReadDependentRequired(const Use& use) {
  ReadMembers(use, [&](const std::string& name, const Json& member, const std::string& at) {
    use.object().dependent_required[name] = ReadNames(use, member, at);
  });
}

void ReadExampleValues(const Use& use) {
  if (!use.value.is_array()) {
    use.Problem("must be a list of values");
  }
}

struct Keyword {
  std::string_view name;
  void (*read)(const Use&);
};

// clang-format off
constexpr Keyword kKeywords[] = {
    {"$anchor", ReadAnchor},
    {"$comment", [](const Use& use) { (void)ReadText(use); }},
    {"$defs", [](const Use& use) { ByName<const SchemaNode*> unused; ReadSchemasByName(use, unused); }},
    {"$ref", [](const Use& use) { if (const auto* text = ReadText(use)) { use.loader.AddRef(use.node, *text); } }},
    {"$schema", ReadDialect},
    {"additionalProperties", [](const Use& use) { use.object().additional = ReadSchema(use); }},
    {"allOf", [](const Use& use) { use.node.all_of = ReadSchemas(use); }},
    {"anyOf", [](const Use& use) { use.node.any_of = ReadSchemas(use); }},
    {"const", [](const Use& use) { use.node.constant = MakeValueRule(Json::array({use.value}), true); }},
    {"contains", [](const Use& use) { use.array().contains = ReadSchema(use); }},
    {"default", [](const Use&) {}},
    {"dependentRequired", ReadDependentRequired},
    {"dependentSchemas", [](const Use& use) { ReadSchemasByName(use, use.node.dependent); }},
    {"deprecated", [](const Use& use) { (void)ReadBool(use); }},
    {"description", [](const Use& use) { (void)ReadText(use); }},
    {"else", [](const Use& use) { use.node.else_ = ReadSchema(use); }},
    {"enum", ReadEnum},
    {"examples", ReadExampleValues},
    {"exclusiveMaximum", [](const Use& use) { use.number().below = ReadNumber(use); }},
    {"exclusiveMinimum", [](const Use& use) { use.number().above = ReadNumber(use); }},
    {"format", ReadFormat},
    {"if", [](const Use& use) { use.node.if_ = ReadSchema(use); }},
    {"items", [](const Use& use) { use.array().items = ReadSchema(use); }},
    {"maxContains", [](const Use& use) { use.array().max_contains = ReadCount(use); }},
    {"maxItems", [](const Use& use) { use.array().max_items = ReadCount(use); }},
    {"maxLength", [](const Use& use) { use.string().max_length = ReadCount(use); }},
    {"maxProperties", [](const Use& use) { use.object().max_properties = ReadCount(use); }},
    {"maximum", [](const Use& use) { use.number().maximum = ReadNumber(use); }},
    {"minContains", [](const Use& use) { use.array().min_contains = ReadCount(use); }},
    {"minItems", [](const Use& use) { use.array().min_items = ReadCount(use); }},
    {"minLength", [](const Use& use) { use.string().min_length = ReadCount(use); }},
    {"minProperties", [](const Use& use) { use.object().min_properties = ReadCount(use); }},
    {"minimum", [](const Use& use) { use.number().minimum = ReadNumber(use); }},
    {"multipleOf", ReadMultipleOf},
    {"not", [](const Use& use) { use.node.not_ = ReadSchema(use); }},
    {"oneOf", [](const Use& use) { use.node.one_of = ReadSchemas(use); }},
    {"pattern", ReadPattern},
    {"patternProperties", ReadPatternProperties},
    {"prefixItems", [](const Use& use) { use.array().prefix = ReadSchemas(use); }},
    {"properties", [](const Use& use) { ReadSchemasByName(use, use.object().properties); }},
    {"propertyNames", [](const Use& use) { use.object().names = ReadSchema(use); }},
    {"readOnly", [](const Use& use) { (void)ReadBool(use); }},
    {"required", [](const Use& use) { use.object().required = ReadNames(use, use.value, use.at); }},
    {"then", [](const Use& use) { use.node.then_ = ReadSchema(use); }},
    {"title", [](const Use& use) { (void)ReadText(use); }},
    {"type", ReadType},
    {"unevaluatedItems", [](const Use& use) { use.node.unevaluated_items = ReadSchema(use); }},
    {"unevaluatedProperties", [](const Use& use) { use.node.unevaluated_properties = ReadSchema(use); }},
    {"uniqueItems", [](const Use& use) { use.array().unique = ReadBool(use).value_or(false); }},
    {"writeOnly", [](const Use& use) { (void)ReadBool(use); }},
};

// Keywords people do write: what to write instead.
constexpr std::pair<std::string_view, std::string_view> kHints[] = {
    {"$dynamicAnchor", "use $anchor and $ref"},
    {"$dynamicRef", "use $ref"},
    {"$id", "leave it out: a schema stands alone here, and $ref starts with #"},
    {"$recursiveAnchor", "use $anchor and $ref"},
    {"$recursiveRef", "use $ref"},
    {"$vocabulary", "leave it out"},
    {"additionalItems", "use prefixItems, and items for the rest"},
    {"contentEncoding", "it would check nothing: use a pattern, or say it in description"},
    {"contentMediaType", "it would check nothing: say it in description"},
    {"contentSchema", "it would check nothing: say it in description"},
    {"definitions", "use $defs"},
    {"dependencies", "use dependentRequired or dependentSchemas"},
    {"divisibleBy", "use multipleOf"},
    {"example", "use examples, a list"},
    {"id", "leave it out: a schema stands alone here, and $ref starts with #"},
    {"nullable", "add \"null\" to type"},
};
// clang-format on

}  // namespace

void LoadKeyword(SchemaLoader& loader, SchemaNode& node, const std::string& name,
                 const Json& value) {
  const std::string at = PointerStep(node.location, name);
  for (const Keyword& keyword : kKeywords) {
    if (keyword.name == name) {
      keyword.read(Use{loader, node, value, at});
      return;
    }
  }
  for (const auto& [known, hint] : kHints) {
    if (known == name) {
      loader.Problem(at, fmt::format("the keyword \"{}\" is not implemented", name),
                     std::string(hint));
      return;
    }
  }
  loader.Problem(
      at, fmt::format("the keyword \"{}\" is unknown", Printable(name)),
      "a rule that cannot be checked is refused: correct the name, or leave it out; remarks "
      "go into $comment");
}

void CheckKeywordsTogether(SchemaLoader& loader, const SchemaNode& node, const Json& schema) {
  const auto alone = [&](std::string_view name, std::string_view needed) {
    if (schema.contains(name) && !schema.contains(needed)) {
      loader.Problem(PointerStep(node.location, name),
                     fmt::format("has no effect without \"{}\"", needed),
                     fmt::format("add \"{}\", or leave it out", needed));
    }
  };
  alone("then", "if");
  alone("else", "if");
  alone("minContains", "contains");
  alone("maxContains", "contains");
}

}  // namespace coffer::policy
