// SPDX-License-Identifier: Apache-2.0
#include "policy/manifest/table_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/quantity.h"
#include "base/text.h"
#include "policy/manifest/keys.h"

namespace coffer::policy {
namespace {

std::string Join(const std::vector<std::string_view>& words) {
  std::string text;
  for (const std::string_view word : words) {
    text += (text.empty() ? "" : ", ") + std::string(word);
  }
  return text;
}

std::string WordHint(std::string_view word, const std::vector<std::string_view>& known) {
  const std::string_view nearest = NearestWord(word, known);
  return nearest.empty() ? fmt::format("known: {}", Join(known))
                         : fmt::format("did you mean {}?", nearest);
}

}  // namespace

std::string_view ExampleOf(TomlKind kind) {
  switch (kind) {
    case TomlKind::kString:
      return "write it in quotes";
    case TomlKind::kInteger:
      return "write a number without quotes, such as 32";
    case TomlKind::kBoolean:
      return "write true or false without quotes";
    case TomlKind::kArray:
      return "write it in square brackets, such as [\"a\", \"b\"]";
    case TomlKind::kTable:
      return "write it in braces, such as { key = \"value\" }, or as a [table]";
    case TomlKind::kFloat:
    case TomlKind::kDate:
      break;
  }
  return "";
}

TableReader::TableReader(const TomlNode& table, std::string_view path, MistakeList& mistakes)
    : TableReader(table, path, KeysOf(path), mistakes) {}

TableReader::TableReader(const TomlNode& table, std::string_view path,
                         const std::vector<std::string_view>& known, MistakeList& mistakes)
    : table_(table), path_(path), mistakes_(mistakes) {
  for (const TomlEntry& entry : table.entries) {
    if (std::find(known.begin(), known.end(), entry.key) == known.end()) {
      const std::string where =
          path.empty() ? "the file has no table" : fmt::format("[{}] has no key", path);
      mistakes.Add(entry.at, fmt::format("{} \"{}\"", where, Printable(entry.key)),
                   WordHint(entry.key, known));
    }
  }
}

Position TableReader::PositionOf(std::string_view key) const {
  const TomlEntry* entry = Find(key);
  return entry != nullptr ? entry->at : table_.at;
}

std::string TableReader::NameOf(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

Result<Nanos> TableReader::DurationWithUnit(std::string_view text) {
  if (!text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos) {
    return Refused("policy.value", fmt::format("\"{}\" has no unit", Printable(text)),
                   fmt::format("write \"{}s\" for seconds; ms, m, h and d are the others",
                               Printable(text.substr(0, 20))));
  }
  return ParseDuration(text);
}

void TableReader::Add(std::string_view key, const std::string& message, std::string hint) {
  const TomlEntry* entry = Find(key);
  mistakes_.Add(entry != nullptr ? entry->value.at : table_.at, NameOf(key) + ": " + message,
                std::move(hint));
}

void TableReader::Add(std::string_view key, Error error) {
  Add(key, Printable(error.message), std::move(error.hint));
}

const TomlNode* TableReader::Typed(std::string_view key, TomlKind kind, std::string_view example) {
  const TomlEntry* entry = Find(key);
  if (entry == nullptr) {
    return nullptr;
  }
  if (entry->value.kind != kind) {
    Add(key,
        fmt::format("{} is wanted, not {}", TomlKindName(kind), TomlKindName(entry->value.kind)),
        std::string(example.empty() ? ExampleOf(kind) : example));
    return nullptr;
  }
  return &entry->value;
}

std::optional<std::string> TableReader::String(std::string_view key) {
  const TomlNode* node = Typed(key, TomlKind::kString, "");
  if (node == nullptr) {
    return std::nullopt;
  }
  if (node->text.empty()) {
    Add(key, "an empty string", "write a value, or leave the key out");
    return std::nullopt;
  }
  return node->text;
}

std::optional<std::string> TableReader::Required(std::string_view key, std::string_view example) {
  if (Find(key) == nullptr) {
    mistakes_.Add(table_.at, fmt::format("{} is missing", NameOf(key)),
                  fmt::format("write {} = {}", key, example));
    return std::nullopt;
  }
  return String(key);
}

std::optional<uint64_t> TableReader::Count(std::string_view key, uint64_t least, uint64_t most) {
  const TomlNode* node = Typed(key, TomlKind::kInteger, "");
  if (node == nullptr) {
    return std::nullopt;
  }
  if (node->integer < 0 || static_cast<uint64_t>(node->integer) < least ||
      static_cast<uint64_t>(node->integer) > most) {
    Add(key, fmt::format("{} is out of range", node->integer),
        fmt::format("write a whole number from {} to {}", least, most));
    return std::nullopt;
  }
  return static_cast<uint64_t>(node->integer);
}

std::optional<bool> TableReader::Boolean(std::string_view key) {
  const TomlNode* node = Typed(key, TomlKind::kBoolean, "");
  return node == nullptr ? std::nullopt : std::optional<bool>(node->boolean);
}

std::optional<std::vector<std::string>> TableReader::Strings(std::string_view key) {
  const TomlNode* node = Typed(key, TomlKind::kArray, "");
  if (node == nullptr) {
    return std::nullopt;
  }
  if (node->items.empty()) {
    Add(key, "an empty list", "name what it should hold, or leave the key out");
    return std::nullopt;
  }
  std::vector<std::string> strings;
  bool good = true;
  for (const TomlNode& item : node->items) {
    if (item.kind != TomlKind::kString || item.text.empty()) {
      mistakes_.Add(
          item.at,
          item.kind == TomlKind::kString
              ? fmt::format("{}: an empty string", NameOf(key))
              : fmt::format("{}: a string is wanted, not {}", NameOf(key), TomlKindName(item.kind)),
          std::string(ExampleOf(TomlKind::kString)));
      good = false;
    } else if (std::find(strings.begin(), strings.end(), item.text) != strings.end()) {
      mistakes_.Add(item.at, fmt::format("{}: \"{}\" twice", NameOf(key), Printable(item.text)),
                    "leave one out");
      good = false;
    } else {
      strings.push_back(item.text);
    }
  }
  return good ? std::optional(std::move(strings)) : std::nullopt;
}

std::optional<size_t> TableReader::Choice(std::string_view key,
                                          std::initializer_list<std::string_view> words) {
  const auto text = String(key);
  if (!text) {
    return std::nullopt;
  }
  const auto* found = std::find(words.begin(), words.end(), *text);
  if (found == words.end()) {
    const std::vector<std::string_view> known(words);
    Add(key, fmt::format("\"{}\" is not one of {}", Printable(*text), Join(known)),
        NearestWord(*text, known).empty() ? "" : WordHint(*text, known));
    return std::nullopt;
  }
  return static_cast<size_t>(found - words.begin());
}

const TomlNode* TableReader::Table(std::string_view key) {
  return Typed(key, TomlKind::kTable, "");
}

std::vector<const TomlNode*> TableReader::Tables(std::string_view key) {
  const std::string example = fmt::format("write [[{}]] above each", NameOf(key));
  const TomlNode* node = Typed(key, TomlKind::kArray, example);
  std::vector<const TomlNode*> tables;
  if (node == nullptr) {
    return tables;
  }
  if (node->items.empty()) {
    Add(key, "an empty list", "name what is allowed, or leave the key out");
  }
  for (const TomlNode& item : node->items) {
    if (item.kind == TomlKind::kTable) {
      tables.push_back(&item);
    } else {
      mistakes_.Add(
          item.at,
          fmt::format("{}: a table is wanted, not {}", NameOf(key), TomlKindName(item.kind)),
          example);
    }
  }
  return tables;
}

Json ToJson(const TomlNode& node, MistakeList& mistakes) {
  switch (node.kind) {
    case TomlKind::kString:
      return node.text;
    case TomlKind::kInteger:
      return node.integer;
    case TomlKind::kBoolean:
      return node.boolean;
    case TomlKind::kFloat:
      if (!std::isfinite(node.number)) {
        mistakes.Add(node.at, "inf and nan have no JSON form", "write a finite number");
        return nullptr;
      }
      return node.number;
    case TomlKind::kDate:
      mistakes.Add(node.at, "a date has no JSON form", "write it in quotes");
      return nullptr;
    case TomlKind::kArray: {
      Json array = Json::array();
      for (const TomlNode& item : node.items) {
        array.push_back(ToJson(item, mistakes));
      }
      return array;
    }
    case TomlKind::kTable:
      break;
  }
  Json object = Json::object();
  for (const TomlEntry& entry : node.entries) {
    object[entry.key] = ToJson(entry.value, mistakes);
  }
  return object;
}

}  // namespace coffer::policy
