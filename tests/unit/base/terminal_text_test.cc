// SPDX-License-Identifier: Apache-2.0
#include "base/terminal_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace coffer {
namespace {

std::string Line(std::string_view text) { return TerminalText(text, LineEnds::kEscape); }

TEST(TerminalText, WhatATerminalObeysIsEscaped) {
  EXPECT_EQ(Line("\x1b[31m\x07\x7f"), "\\u001b[31m\\u0007\\u007f");
  EXPECT_EQ(Line("\xc2\x80\xc2\x9b\xc2\x9f"), "\\u0080\\u009b\\u009f");
  EXPECT_EQ(Line("\xe2\x80\xae\xe2\x81\xa6\xe2\x80\xa8\xd8\x9c"), "\\u202e\\u2066\\u2028\\u061c");
  EXPECT_EQ(Line(std::string_view("\0", 1)), "\\u0000");
  EXPECT_EQ(Line("a\nb\tc"), "a\\u000ab\\u0009c");
  EXPECT_EQ(TerminalText("a\nb\tc\r", LineEnds::kKeep), "a\nb\tc\\u000d");
}

TEST(TerminalText, BytesThatAreNotTextAreEscaped) {
  EXPECT_EQ(Line("\x9b"
                 "31m"),
            "\\x9b31m");
  EXPECT_EQ(Line("\xc2"), "\\xc2");
  EXPECT_EQ(Line("\xc1\x9b"), "\\xc1\\x9b") << "an overlong form";
  EXPECT_EQ(Line("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
}

TEST(TerminalText, LettersStay) {
  const std::string text = "plain \\u gr\xc3\xbc\xc3\x9f \xc2\xa0 \xe6\xbc\xa2 \xf0\x9f\x8c\x8a";
  EXPECT_EQ(Line(text), text);
  EXPECT_EQ(Line(""), "");
}

TEST(TerminalText, JsonMeansTheSameAfterwards) {
  std::string every;
  for (int point = 1; point < 0x100; ++point) {
    if (point < 0x80) {
      every += static_cast<char>(point);
    } else {
      every += static_cast<char>(0xc0 | point >> 6);
      every += static_cast<char>(0x80 | (point & 0x3f));
    }
  }
  every += "\xe2\x80\xae\xe2\x80\xa9";
  const Json json = {{"name", every}};
  for (const int indent : {-1, 2}) {
    const std::string safe = TerminalText(PrintJson(json, indent), LineEnds::kKeep);
    EXPECT_EQ(Json::parse(safe), json);
    EXPECT_EQ(TerminalText(safe, LineEnds::kKeep), safe);
  }
}

}  // namespace
}  // namespace coffer
