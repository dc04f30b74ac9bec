// SPDX-License-Identifier: Apache-2.0
//
// docs/MANIFEST.md describes every key the parser knows, and no other.
#include "policy/manifest/keys.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>

#include "tests/support/run.h"

namespace coffer::policy {
namespace {

// Those of the table, and of every table that one of them leads to.
void AddKeys(const std::string& table, std::set<std::string>& keys) {
  for (const std::string_view key : KeysOf(table)) {
    const std::string path = table.empty() ? std::string(key) : table + "." + std::string(key);
    if (!table.empty()) {
      keys.insert(path);
    }
    AddKeys(path, keys);
    AddKeys(path + ".*", keys);
  }
}

std::set<std::string> KnownKeys() {
  std::set<std::string> keys;
  AddKeys("", keys);
  return keys;
}

// The first cell of every row of a table that has "| key |" as its head.
std::set<std::string> DescribedKeys(const std::string& text) {
  std::set<std::string> keys;
  bool inside = false;
  for (const std::string& line : test::Lines(text)) {
    if (line.starts_with("| key |")) {
      inside = true;
    } else if (!line.starts_with("|")) {
      inside = false;
    } else if (inside && line.starts_with("| `")) {
      keys.insert(line.substr(3, line.find('`', 3) - 3));
    }
  }
  return keys;
}

TEST(ManifestKeys, TheManualNamesEveryKeyAndNoOther) {
  const char* source = std::getenv("COFFER_SOURCE");
  ASSERT_NE(source, nullptr) << "COFFER_SOURCE must be the checkout";
  const auto text = test::ReadFile(std::string(source) + "/docs/MANIFEST.md");
  ASSERT_TRUE(text);
  const std::set<std::string> known = KnownKeys();
  const std::set<std::string> described = DescribedKeys(*text);
  for (const std::string& key : known) {
    EXPECT_TRUE(described.contains(key)) << "docs/MANIFEST.md does not describe " << key;
  }
  for (const std::string& key : described) {
    EXPECT_TRUE(known.contains(key))
        << "docs/MANIFEST.md describes " << key << ", which the parser refuses";
  }
  EXPECT_GT(known.size(), 60U);
}

TEST(ManifestKeys, TablesAreKeysOfTheFile) {
  for (const std::string_view key : KeysOf("")) {
    EXPECT_FALSE(KeysOf(key).empty()) << key;
  }
  EXPECT_TRUE(KeysOf("nothing").empty());
}

}  // namespace
}  // namespace coffer::policy
