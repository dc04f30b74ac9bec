// SPDX-License-Identifier: Apache-2.0
#include "isolation/child/report.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>

namespace coffer::isolation {
namespace {

// A header and its strings. That nothing beyond them is read is for the fuzzer (tests/fuzz/call_block_fuzz.cc).
struct Block {
  explicit Block(const std::string& strings) {
    const CallBlock start{kCallMagic, static_cast<uint32_t>(strings.size()), 2, 1, 0, 0, 0, 0};
    bytes = std::string(reinterpret_cast<const char*>(&start), sizeof start) + strings;
  }
  CallBlock* header() { return reinterpret_cast<CallBlock*>(bytes.data()); }
  bool Valid() { return ValidCallBlock(header(), bytes.size()); }
  std::string bytes;
};

const std::string kStrings("sh\0-c\0A=b\0/bin/sh\0/workspace\0", 29);

TEST(CallBlock, AGoodOneIsAccepted) {
  Block block(kStrings);
  block.header()->program = 10;
  block.header()->cwd = 18;
  EXPECT_TRUE(block.Valid());
  EXPECT_TRUE(ValidCallBlock(block.header(), block.bytes.size() + 100))
      << "the mapping may be larger";
  Block empty_strings(std::string(3, '\0'));
  EXPECT_TRUE(empty_strings.Valid());
}

TEST(CallBlock, MalformedOnesAreRefused) {
  const std::pair<const char*, std::function<void(CallBlock&)>> cases[] = {
      {"magic", [](CallBlock& b) { b.magic ^= 1; }},
      {"no magic", [](CallBlock& b) { b.magic = 0; }},
      {"size 0", [](CallBlock& b) { b.size = 0; }},
      {"size beyond the mapping", [](CallBlock& b) { ++b.size; }},
      {"size that wraps", [](CallBlock& b) { b.size = UINT32_MAX; }},
      {"no arguments", [](CallBlock& b) { b.argc = 0; }},
      {"more arguments than strings", [](CallBlock& b) { b.argc = 5; }},
      {"more variables than strings", [](CallBlock& b) { b.envc = 4; }},
      {"too many arguments", [](CallBlock& b) { b.argc = kMaxArguments + 1; }},
      {"arguments that wrap",
       [](CallBlock& b) {
         b.argc = UINT32_MAX;
         b.envc = 3;
       }},
      {"variables that wrap", [](CallBlock& b) { b.envc = UINT32_MAX; }},
      {"program outside", [](CallBlock& b) { b.program = b.size; }},
      {"program far outside", [](CallBlock& b) { b.program = UINT32_MAX; }},
      {"directory outside", [](CallBlock& b) { b.cwd = b.size; }},
      {"a terminal of 2", [](CallBlock& b) { b.tty = 2; }},
      {"no end", [](CallBlock& b) { --b.size; }},
      {"an unterminated string",
       [](CallBlock& b) { reinterpret_cast<char*>(&b + 1)[b.size - 1] = 'x'; }},
  };
  for (const auto& [name, change] : cases) {
    Block block(kStrings);
    ASSERT_TRUE(block.Valid()) << "the control";
    change(*block.header());
    EXPECT_FALSE(block.Valid()) << name;
  }
  Block block(kStrings);
  for (size_t capacity = 0; capacity < block.bytes.size(); ++capacity) {
    EXPECT_FALSE(ValidCallBlock(block.header(), capacity)) << capacity;
  }
}

TEST(Stages, HaveNames) {
  std::set<std::string> names;
  for (uint32_t i = 0; i < kStageCount; ++i) {
    const std::string name = StageName(static_cast<Stage>(i));
    EXPECT_FALSE(name.empty());
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  EXPECT_STREQ(StageName(static_cast<Stage>(kStageCount)), "an unknown stage");
  EXPECT_STREQ(StageName(static_cast<Stage>(UINT32_MAX)), "an unknown stage");
}

}  // namespace
}  // namespace coffer::isolation
