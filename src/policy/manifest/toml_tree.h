// SPDX-License-Identifier: Apache-2.0
//
// TOML as a plain tree with a position at every key and value, so that one file alone knows toml++.
//
// Bounded before toml++ sees the text: size, nesting, and the number of parts of a dotted key (a table of a hundred
// thousand levels parses well and overflows the stack when it is destroyed). Invalid UTF-8, NUL, and everything else
// that is not TOML 1.0 is a mistake with its place. Syntax ends at the first mistake; the checks of parse.h
// go on after theirs.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "policy/manifest/mistake.h"

namespace coffer::policy {

inline constexpr size_t kMaxTomlBytes = 256 << 10;
inline constexpr size_t kMaxTomlDepth = 32;    // of brackets and braces
inline constexpr size_t kMaxTomlKeyDots = 8;   // in one dotted key
inline constexpr size_t kMaxTomlNodes = 8192;  // values of every kind together

enum class TomlKind : uint8_t { kString, kInteger, kFloat, kBoolean, kDate, kArray, kTable };
// "a string", "an array", ...
std::string_view TomlKindName(TomlKind kind);

struct TomlEntry;

struct TomlNode {
  TomlKind kind = TomlKind::kTable;
  Position at;
  std::string text;
  int64_t integer = 0;
  double number = 0;
  bool boolean = false;
  std::vector<TomlNode> items;     // of an array
  std::vector<TomlEntry> entries;  // of a table, in the order of the file

  const TomlEntry* Find(std::string_view key) const;
};

struct TomlEntry {
  std::string key;
  Position at;  // of the key
  TomlNode value;
};

std::variant<TomlNode, Mistake> ReadToml(std::string_view text);

// The bounds alone, by looking at brackets, dots and quotes; exposed for its tests.
std::vector<Mistake> CheckTomlBounds(std::string_view text);

}  // namespace coffer::policy
