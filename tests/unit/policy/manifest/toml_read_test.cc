// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "policy/manifest/toml_tree.h"

namespace coffer::policy {
namespace {

TomlNode Good(std::string_view text) {
  std::variant<TomlNode, Mistake> read = ReadToml(text);
  if (auto* mistake = std::get_if<Mistake>(&read)) {
    ADD_FAILURE() << FormatMistake("text", *mistake);
    return {};
  }
  return std::get<TomlNode>(std::move(read));
}

std::string Bad(std::string_view text) {
  const std::variant<TomlNode, Mistake> read = ReadToml(text);
  const auto* mistake = std::get_if<Mistake>(&read);
  return mistake == nullptr ? "accepted" : FormatMistake("f", *mistake);
}

std::string Repeated(std::string_view part, size_t times) {
  std::string text;
  for (size_t i = 0; i < times; ++i) {
    text += part;
  }
  return text;
}

TEST(TomlRead, KeepsOrderKindsAndPositions) {
  const TomlNode root =
      Good("z = 1\na = \"\xc3\xa9\"  # text\n[t]\nb = [true,\n  1.5]\nc = { d = 1979-05-27 }\n");
  ASSERT_EQ(root.entries.size(), 3U);
  EXPECT_EQ(root.entries[0].key, "z");
  EXPECT_EQ(root.entries[1].value.text, "\xc3\xa9");
  const TomlNode& table = root.Find("t")->value;
  EXPECT_EQ(table.at, (Position{3, 1}));
  const TomlNode& array = table.Find("b")->value;
  EXPECT_EQ(array.at, (Position{4, 5}));
  EXPECT_EQ(array.items[0].kind, TomlKind::kBoolean);
  EXPECT_EQ(array.items[1].kind, TomlKind::kFloat);
  EXPECT_EQ(array.items[1].at, (Position{5, 3}));
  EXPECT_EQ(table.Find("c")->value.Find("d")->at, (Position{6, 7}));
  EXPECT_EQ(table.Find("c")->value.Find("d")->value.kind, TomlKind::kDate);
  EXPECT_EQ(table.Find("nothing"), nullptr);
}

// toml++ ends in __builtin_unreachable for these, which only a sanitizer can see.
TEST(TomlRead, LettersThatAreNotAsciiAreNoWhiteSpace) {
  for (const std::string_view letter : {"\xc2\xa1", "\xc3\xbc", "\xd2\x99", "\xe1\x9a\x81",
                                        "\xe2\x80\x8c", "\xe3\x80\x81", "\xef\xbb\xbe"}) {
    const std::string text = "a = 1 " + std::string(letter) + "\n";
    EXPECT_TRUE(Bad(text).starts_with("f:1:7: not TOML: ")) << Bad(text);
  }
  const std::string space = Bad("a = 1 \xe3\x80\x80\n");  // U+3000 is one, though not TOML's
  EXPECT_NE(space.find("expected space or tab"), std::string::npos) << space;
}

TEST(TomlRead, WhatIsNotTomlIsAMistakeWithItsPlace) {
  EXPECT_TRUE(Bad("a = 1\nb = = 2\n").starts_with("f:2:5: not TOML: ")) << Bad("a = 1\nb = = 2\n");
  EXPECT_TRUE(Bad("a = 1\na = 2\n").starts_with("f:2:"));
  EXPECT_TRUE(Bad("a = \"\xff\"").starts_with("f:1:"));
  EXPECT_TRUE(Bad(std::string("a = \"x\0y\"", 9)).starts_with("f:1:"));
  EXPECT_TRUE(Bad(std::string("a = 1\n\0", 7)).starts_with("f:2:"));
  EXPECT_TRUE(Bad("a = 99999999999999999999").starts_with("f:1:"));
  EXPECT_TRUE(Bad("a = 1e999999").starts_with("f:1:"));
  EXPECT_TRUE(Bad("[a\n").starts_with("f:1:"));
  EXPECT_TRUE(Bad("[{").starts_with("f:1:2: not TOML: "));  // an assertion of toml++
  EXPECT_TRUE(Bad("a = \"never closed\n").starts_with("f:1:"));
  EXPECT_EQ(Bad("a = \"x\\u0000y\""), "f:1:5: a string with a NUL character");
  EXPECT_EQ(Bad("\"x\\u0000y\" = 1"), "f:1:1: a key with a NUL character");
  for (const char c : Bad("a = \x1b[31m\n")) {
    EXPECT_GE(static_cast<unsigned char>(c), 0x20);
  }
}

TEST(TomlRead, HostileNestingEndsAtOnce) {
  EXPECT_EQ(Bad("a = " + Repeated("[", 100000)),
            "f:1:37: nested deeper than 32 levels: a manifest never needs that");
  EXPECT_EQ(Bad("a = " + Repeated("{a=", 50000)).substr(0, 32), "f:1:101: nested deeper than 32 l");
  EXPECT_EQ(Bad("[a" + Repeated(".a", 100000) + "]"),
            "f:1:19: a key of more than 9 parts: a manifest never needs that");
  EXPECT_EQ(Bad("a" + Repeated(".\"a\"", 50000) + " = 1").substr(0, 37),
            "f:1:34: a key of more than 9 parts: a");
  // Behind a string that ends with more quotes than it began with.
  EXPECT_TRUE(
      Bad("x = {s = \"\"\"t\"\"\"\"\", a" + Repeated(".a", 50000) + " = 1}").find("9 parts") !=
      std::string::npos);
  EXPECT_TRUE(Bad("x = ['''t''''', " + Repeated("[", 1000)).find("nested deeper") !=
              std::string::npos);
  EXPECT_TRUE(Bad("x = [\"\\\\\", " + Repeated("[", 1000)).find("nested deeper") !=
              std::string::npos);
  EXPECT_EQ(Bad(std::string(kMaxTomlBytes + 1, ' ')).substr(0, 10), "f:1:1: lar");
  EXPECT_TRUE(Bad("a = [" + Repeated("1,", kMaxTomlNodes) + "]").find("too many values") !=
              std::string::npos);
  EXPECT_TRUE(Bad(Repeated("[[a]]\n", kMaxTomlNodes)).find("too many values") != std::string::npos);
}

TEST(TomlRead, BoundsDoNotCountWhatIsText) {
  Good("a = \"" + Repeated("[", 100) + Repeated(".", 100) + "\"\n");
  Good("a = '" + Repeated("{", 100) + "' # " + Repeated("[.", 100) + "\n");
  Good("a = \"\"\"\n" + Repeated("[.\n", 100) + "\\\"\"\" \"\"\"\n");
  Good("a = '''\n" + Repeated("[.\"\n", 100) + "'''\nb = [[[[1]]]]\n");
  Good("a = \"\\\"" + Repeated("[", 100) + "\"\n");
  Good(Repeated("# .", 100) + "\n" + "a = [1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 10.5]\n");
}

}  // namespace
}  // namespace coffer::policy
