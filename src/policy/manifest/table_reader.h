// SPDX-License-Identifier: Apache-2.0
//
// Reads one table of a manifest: typed values in, mistakes out, and every unknown key is one.
//
// A getter returns nothing if the key is missing or wrong; in the second case the mistake is already written down, so
// the reader goes on with the default and finds the next mistake too.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/result.h"
#include "policy/manifest/toml_tree.h"

namespace coffer::policy {

class TableReader {
 public:
  // `path` is the name in keys.h ("files.mount"); unknown keys are reported at once.
  TableReader(const TomlNode& table, std::string_view path, MistakeList& mistakes);
  // A table of another file than a manifest, with the keys it may have; `path` is kept, not copied.
  TableReader(const TomlNode& table, std::string_view path,
              const std::vector<std::string_view>& known, MistakeList& mistakes);

  const TomlEntry* Find(std::string_view key) const { return table_.Find(key); }
  // The table's own position: where a missing key belongs.
  Position position() const { return table_.at; }
  // The position of a key, or of the table.
  Position PositionOf(std::string_view key) const;

  std::optional<std::string> String(std::string_view key);  // not empty
  std::optional<std::string> Required(std::string_view key, std::string_view example);
  std::optional<uint64_t> Count(std::string_view key, uint64_t least, uint64_t most);
  std::optional<bool> Boolean(std::string_view key);
  std::optional<std::vector<std::string>> Strings(std::string_view key);  // not empty, no repeats
  // One of the words; the index in `words`.
  std::optional<size_t> Choice(std::string_view key, std::initializer_list<std::string_view> words);
  const TomlNode* Table(std::string_view key);
  // An array of tables, [[key]].
  std::vector<const TomlNode*> Tables(std::string_view key);

  // A string in a form of its own, such as ParseSize; leaves `place` as it is if the key is missing or wrong.
  template <typename T>
  void Parsed(T& place, std::string_view key, Result<T> (*parse)(std::string_view)) {
    if (const auto text = String(key)) {
      Result<T> parsed = parse(*text);
      if (parsed.ok()) {
        place = std::move(parsed).value();
      } else {
        Add(key, std::move(parsed.error()));
      }
    }
  }

  // In a file a duration says its unit: "10" is read as ten seconds by one person and as milliseconds by another.
  void Duration(Nanos& place, std::string_view key) { Parsed(place, key, DurationWithUnit); }

  void Add(std::string_view key, const std::string& message, std::string hint = {});
  void Add(std::string_view key, Error error);
  // "limits.memory".
  std::string NameOf(std::string_view key) const;

 private:
  static Result<Nanos> DurationWithUnit(std::string_view text);
  const TomlNode* Typed(std::string_view key, TomlKind kind, std::string_view example);

  const TomlNode& table_;
  std::string_view path_;
  MistakeList& mistakes_;
};

// A TOML value as JSON. Dates, infinities and NaN have no JSON form and are mistakes.
Json ToJson(const TomlNode& node, MistakeList& mistakes);

// "'x' is missing", "a string is wanted, not an array": the example of what to write for a kind.
std::string_view ExampleOf(TomlKind kind);

}  // namespace coffer::policy
