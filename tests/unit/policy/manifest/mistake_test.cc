// SPDX-License-Identifier: Apache-2.0
#include "policy/manifest/mistake.h"

#include <gtest/gtest.h>

namespace coffer::policy {
namespace {

TEST(Mistake, ReadsAsACompilerWouldSayIt) {
  EXPECT_EQ(FormatMistake("tools/x.toml", {{3, 7}, "wrong", "write right"}),
            "tools/x.toml:3:7: wrong: write right");
  EXPECT_EQ(FormatMistake("x", {{1, 1}, "wrong", ""}), "x:1:1: wrong");
  EXPECT_EQ(FormatMistake("a\nb\x1b[31m", {{1, 1}, "wrong", ""}), "a\\x0ab\\x1b[31m:1:1: wrong");
}

TEST(Mistake, ListIsSortedWithoutRepeatsAndBounded) {
  MistakeList list;
  list.Add({5, 1}, "later");
  list.Add({2, 9}, "same line, further");
  list.Add({2, 1}, "first");
  list.Add({2, 1}, "first");
  const std::vector<Mistake> few = list.Take();
  ASSERT_EQ(few.size(), 3U);
  EXPECT_EQ(few[0].message, "first");
  EXPECT_EQ(few[2].message, "later");

  MistakeList many;
  for (uint32_t i = 0; i < kMaxMistakes + 7; ++i) {
    many.Add({i + 1, 1}, "no " + std::to_string(i));
  }
  const std::vector<Mistake> taken = many.Take();
  ASSERT_EQ(taken.size(), kMaxMistakes + 1);
  EXPECT_EQ(taken.back().message, "and 7 more mistakes");
}

TEST(Mistake, SuggestsTheNearestWordOrNothing) {
  const std::vector<std::string_view> known = {"memory", "processes", "cpu", "io"};
  EXPECT_EQ(NearestWord("memroy", known), "memory");
  EXPECT_EQ(NearestWord("Memory", known), "memory");
  EXPECT_EQ(NearestWord("process", known), "processes");
  EXPECT_EQ(NearestWord("cpus", known), "cpu");
  EXPECT_EQ(NearestWord("ip", known), "io");
  EXPECT_EQ(NearestWord("colour", known), "");
  EXPECT_EQ(NearestWord(std::string(100000, 'm'), known), "");
  EXPECT_EQ(NearestWord("", known), "");
}

}  // namespace
}  // namespace coffer::policy
