// SPDX-License-Identifier: Apache-2.0
//
// The only file that includes toml++ (five seconds of compiling). Built without its exceptions and its printers, so
// that it brings no streams and no locale into the executable.
//
// toml++ 3.3 asserts what a hostile text can break ("[{") and tells clang to assume it in release builds; the code
// behind these asserts handles the case well. So both are switched off, in every build.
#undef NDEBUG
#define TOML_ASSERT(expr) static_assert(true)
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 32
#define TOML_FLOAT_CHARCONV 1  // numbers without streams
#include <toml++/toml.h>

#include <algorithm>

#include "base/text.h"
#include "policy/toml_tree.h"

namespace coffer::policy {
namespace {

Position PositionOf(const toml::source_region& region) {
  return {std::max<uint32_t>(region.begin.line, 1), std::max<uint32_t>(region.begin.column, 1)};
}

class Converter {
 public:
  TomlNode Convert(const toml::node& node) {
    TomlNode made;
    made.at = PositionOf(node.source());
    if (++nodes_ > kMaxTomlNodes) {
      Stop(made.at, "too many values for one manifest");
      return made;
    }
    switch (node.type()) {
      case toml::node_type::string:
        made.kind = TomlKind::kString;
        made.text = node.as_string()->get();
        if (made.text.find('\0') != std::string::npos) {
          Stop(made.at, "a string with a NUL character");
        }
        break;
      case toml::node_type::integer:
        made.kind = TomlKind::kInteger;
        made.integer = node.as_integer()->get();
        break;
      case toml::node_type::floating_point:
        made.kind = TomlKind::kFloat;
        made.number = node.as_floating_point()->get();
        break;
      case toml::node_type::boolean:
        made.kind = TomlKind::kBoolean;
        made.boolean = node.as_boolean()->get();
        break;
      case toml::node_type::array:
        made.kind = TomlKind::kArray;
        for (const toml::node& item : *node.as_array()) {
          made.items.push_back(Convert(item));
        }
        break;
      case toml::node_type::table:
        ConvertTable(*node.as_table(), made);
        break;
      default:
        made.kind = TomlKind::kDate;
        break;
    }
    return made;
  }

  const std::vector<Mistake>& mistakes() const { return mistakes_; }

 private:
  void ConvertTable(const toml::table& table, TomlNode& made) {
    for (const auto& [key, value] : table) {
      TomlEntry entry{std::string(key.str()), PositionOf(key.source()), Convert(value)};
      if (entry.key.find('\0') != std::string::npos) {
        Stop(entry.at, "a key with a NUL character");
      }
      made.entries.push_back(std::move(entry));
    }
    std::sort(made.entries.begin(), made.entries.end(),
              [](const TomlEntry& a, const TomlEntry& b) { return a.at < b.at; });
  }

  void Stop(Position at, std::string message) {
    if (mistakes_.empty()) {
      mistakes_.push_back({at, std::move(message), ""});
    }
  }

  size_t nodes_ = 0;
  std::vector<Mistake> mistakes_;
};

}  // namespace

std::string_view TomlKindName(TomlKind kind) {
  switch (kind) {
    case TomlKind::kString:
      return "a string";
    case TomlKind::kInteger:
      return "a whole number";
    case TomlKind::kFloat:
      return "a number with a fraction";
    case TomlKind::kBoolean:
      return "true or false";
    case TomlKind::kDate:
      return "a date or time";
    case TomlKind::kArray:
      return "an array";
    case TomlKind::kTable:
      break;
  }
  return "a table";
}

const TomlEntry* TomlNode::Find(std::string_view key) const {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const TomlEntry& entry) { return entry.key == key; });
  return found == entries.end() ? nullptr : &*found;
}

std::variant<TomlNode, Mistake> ReadToml(std::string_view text) {
  if (std::vector<Mistake> beyond = CheckTomlBounds(text); !beyond.empty()) {
    return std::move(beyond.front());
  }
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return Mistake{PositionOf(error.source()), "not TOML: " + Printable(error.description()), ""};
  }
  Converter converter;
  TomlNode root = converter.Convert(parsed.table());
  if (!converter.mistakes().empty()) {
    return converter.mistakes().front();
  }
  return root;
}

}  // namespace coffer::policy
