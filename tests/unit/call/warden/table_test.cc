// SPDX-License-Identifier: Apache-2.0
#include "call/warden/table.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "call/config_ceilings.h"
#include "call/make_table.h"
#include "policy/manifest/starter.h"
#include "tests/support/run.h"

namespace coffer::call {
namespace {

WardenTable Shipped() {
  ToolShelf shelf({});
  EXPECT_TRUE(shelf.Reload().ok());
  return *MakeTable(shelf, DefaultCeilings(), {});
}

TEST(WardenTable, EveryToolOfTheShelfHasAnEntryThatComesBackAsItWas) {
  const WardenTable sent = Shipped();
  EXPECT_EQ(sent.entries.size(), 8U);
  const std::string bytes = EncodeTable(sent);
  const Result<WardenTable> got = DecodeTable(bytes);
  ASSERT_TRUE(got.ok()) << got.error().message;
  EXPECT_EQ(EncodeTable(*got), bytes);
  EXPECT_EQ(got->ceilings, sent.ceilings);
  const TableEntry* const python = got->Find("python");
  ASSERT_NE(python, nullptr);
  EXPECT_EQ(python->envelope.runtimes, std::vector<std::string>{"python3"});
  EXPECT_EQ(python->argv.front().words.front().text, "python3");
  EXPECT_EQ(got->Find("pythons"), nullptr);
}

TEST(WardenTable, WhatDoesNotDecodeCompletelyIsRefused) {
  const std::string whole = EncodeTable(Shipped());
  for (size_t size = 0; size < whole.size(); size += 7) {
    EXPECT_FALSE(DecodeTable(std::string_view(whole).substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(DecodeTable(whole + "x").ok());
  const auto refused = [](const auto& change) {
    WardenTable table = Shipped();
    change(table);
    return !DecodeTable(EncodeTable(table)).ok();
  };
  EXPECT_TRUE(refused([](WardenTable& t) { t.entries.push_back(t.entries[0]); })) << "a tool twice";
  EXPECT_TRUE(refused([](WardenTable& t) { t.entries[0].tool.clear(); }));
  EXPECT_TRUE(refused([](WardenTable& t) { t.entries[0].envelope.runtimes.clear(); }));
  EXPECT_TRUE(refused([](WardenTable& t) { t.entries[0].argv.clear(); }));
  EXPECT_TRUE(refused([](WardenTable& t) {
    t.entries[0].argv[0].words[0].kind = policy::WordKind::kParameter;
  })) << "a program that the request chooses";
  EXPECT_TRUE(refused([](WardenTable& t) { t.ceilings.memory = 0; }));
  EXPECT_TRUE(refused([](WardenTable& t) { t.ceilings.memory = 1ULL << 60; }));
  EXPECT_FALSE(refused([](WardenTable&) {})) << "the control";
}

// The gateway's shelf keeps the last good version of a file with a mistake; the table keeps its entry.
TEST(WardenTable, AFileThatStopsLoadingKeepsItsEntry) {
  const test::TempDir dir;
  dir.Write("mine.toml", policy::StarterManifest("mine"));
  const auto make = [&](const WardenTable& before) {
    ToolShelf shelf({dir.path()});
    EXPECT_TRUE(shelf.Reload().ok());
    return *MakeTable(shelf, DefaultCeilings(), before);
  };
  const WardenTable good = make({});
  ASSERT_NE(good.Find("mine"), nullptr);
  dir.Write("mine.toml", policy::StarterManifest("mine") + "\n[tool.nonsense]\n");
  EXPECT_EQ(make({}).Find("mine"), nullptr) << "it never loaded";
  const WardenTable kept = make(good);
  ASSERT_NE(kept.Find("mine"), nullptr);
  EXPECT_EQ(kept.Find("mine")->manifest_hash, good.Find("mine")->manifest_hash);
  ASSERT_EQ(::unlink((dir / "mine.toml").c_str()), 0);
  EXPECT_EQ(make(good).Find("mine"), nullptr) << "a tool without a manifest does not exist";
}

}  // namespace
}  // namespace coffer::call
