// SPDX-License-Identifier: Apache-2.0
//
// The rules about a value as a whole: type, enum, const; about numbers; about strings.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "policy/schema/run.h"
#include "policy/schema/value.h"

namespace coffer::policy {
namespace {

constexpr std::pair<uint8_t, std::string_view> kTypeTexts[] = {
    {kTypeNull, "null"},          {kTypeBoolean, "a boolean"}, {kTypeFraction, "a number"},
    {kTypeInteger, "an integer"}, {kTypeString, "a string"},   {kTypeArray, "an array"},
    {kTypeObject, "an object"},
};

}  // namespace

uint8_t TypeOf(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return kTypeNull;
    case Json::value_t::boolean:
      return kTypeBoolean;
    case Json::value_t::string:
      return kTypeString;
    case Json::value_t::array:
      return kTypeArray;
    case Json::value_t::object:
      return kTypeObject;
    default:
      return Number(value).integer() ? kTypeInteger : kTypeFraction;
  }
}

std::string TypeText(uint8_t types) {
  if ((types & kTypeFraction) != 0) {
    types &= static_cast<uint8_t>(~kTypeInteger);  // "a number" says both
  }
  std::string text;
  for (const auto& [bit, name] : kTypeTexts) {
    if ((types & bit) != 0) {
      text += text.empty() ? "" : " or ";
      text += name;
    }
  }
  return text;
}

bool SchemaRun::Values(const SchemaNode& node, const Json& value, const SchemaPath& path,
                       Errors* errors) {
  const uint8_t type = TypeOf(value);
  if (node.types && (type & *node.types) == 0) {
    return Fail(node, "type", path, errors,
                errors == nullptr
                    ? ""
                    : fmt::format("must be {}, not {}", TypeText(*node.types), TypeText(type)));
  }
  std::string text;
  for (const std::optional<ValueRule>* rule : {&node.enumeration, &node.constant}) {
    if (!*rule) {
      continue;
    }
    bool found = ((*rule)->types & type) != 0;
    if (found && text.empty()) {
      text = CanonicalText(value);
      if (!Spend(text.size() / 16)) {
        return false;
      }
    }
    found = found && std::binary_search((*rule)->texts.begin(), (*rule)->texts.end(), text);
    if (!found) {
      return Fail(node, (*rule)->single ? "const" : "enum", path, errors,
                  errors == nullptr ? "" : "must be " + (*rule)->shown);
    }
  }
  return true;
}

bool SchemaRun::Numbers(const SchemaNode& node, const Json& value, const SchemaPath& path,
                        Errors* errors) {
  const NumberRules& rules = *node.number;
  const Number number(value);
  bool valid = true;
  const auto fail = [&](std::string_view keyword, std::string_view what, const Number& bound) {
    valid = Fail(node, keyword, path, errors,
                 errors == nullptr ? "" : fmt::format("must be {} {}", what, bound.ToText()));
  };
  if (rules.minimum && number.Compare(*rules.minimum) < 0) {
    fail("minimum", "at least", *rules.minimum);
  }
  if (rules.maximum && number.Compare(*rules.maximum) > 0) {
    fail("maximum", "at most", *rules.maximum);
  }
  if (rules.above && number.Compare(*rules.above) <= 0) {
    fail("exclusiveMinimum", "above", *rules.above);
  }
  if (rules.below && number.Compare(*rules.below) >= 0) {
    fail("exclusiveMaximum", "below", *rules.below);
  }
  if (rules.multiple_of && !number.MultipleOf(*rules.multiple_of)) {
    fail("multipleOf", "a multiple of", *rules.multiple_of);
  }
  return valid;
}

bool SchemaRun::Strings(const SchemaNode& node, const Json& value, const SchemaPath& path,
                        Errors* errors) {
  const StringRules& rules = *node.string;
  const std::string& text = value.get_ref<const std::string&>();
  bool valid = true;
  if (rules.min_length || rules.max_length) {
    if (!Spend(text.size() / 256)) {
      return false;
    }
    const size_t length = CodePoints(text);
    if (rules.min_length && length < *rules.min_length) {
      valid =
          Fail(node, "minLength", path, errors,
               fmt::format("must have at least {} characters, not {}", *rules.min_length, length));
    }
    if (rules.max_length && length > *rules.max_length) {
      valid =
          Fail(node, "maxLength", path, errors,
               fmt::format("must have at most {} characters, not {}", *rules.max_length, length));
    }
  }
  if (!valid && errors == nullptr) {
    return false;
  }
  if (rules.pattern && !Found(*rules.pattern, text)) {
    if (spent_) {
      return false;
    }
    valid = Fail(node, "pattern", path, errors,
                 fmt::format("must match the pattern {}", Printable(rules.pattern->source())));
  }
  if (rules.format != nullptr) {
    if (!Spend(text.size() / 256)) {
      return false;
    }
    if (!rules.format->check(text)) {
      valid = Fail(node, "format", path, errors,
                   fmt::format("must be of the format {}, such as {}", rules.format->name,
                               rules.format->example));
    }
  }
  return valid;
}

}  // namespace coffer::policy
