// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace coffer {
namespace {

// As the definition has it, without any checks.
std::string Encoded(uint32_t point, size_t length) {
  if (length == 1) {
    return std::string(1, static_cast<char>(point));
  }
  std::string text(length, '\0');
  for (size_t i = length; i-- > 1; point >>= 6) {
    text[i] = static_cast<char>(0x80 | (point & 0x3f));
  }
  text[0] = static_cast<char>(((0xff00U >> length) & 0xff) | point);
  return text;
}

size_t ShortestLength(uint32_t point) {
  return point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
}

TEST(Utf8, EveryCharacterHasOneForm) {
  for (uint32_t point = 0; point < 0x110000 + 0x100; ++point) {
    const bool exists = point < 0x110000 && (point < 0xd800 || point > 0xdfff);
    const size_t shortest = ShortestLength(point);
    const Utf8Character found = DecodeUtf8(Encoded(point, shortest) + "\x80 more");
    ASSERT_EQ(found.length, exists ? shortest : 0) << std::hex << point;
    ASSERT_EQ(found.point, exists ? point : 0) << std::hex << point;
    for (size_t longer = shortest + 1; longer <= 4; ++longer) {
      ASSERT_EQ(DecodeUtf8(Encoded(point, longer)).length, 0U)
          << std::hex << point << " " << longer;
    }
  }
}

TEST(Utf8, WhatIsNotTextIsNoCharacter) {
  for (const std::string& text :
       {std::string(), std::string("\x80"), std::string("\xbf"), std::string("\xc3"),
        std::string("\xc3z"), std::string("\xe2\x80"), std::string("\xe2\x80z"),
        std::string("\xf0\x9f\x98"), std::string("\xf5\x80\x80\x80"), std::string("\xff")}) {
    EXPECT_EQ(DecodeUtf8(text).length, 0U) << text;
    EXPECT_EQ(Utf8Length(text), 0U) << text;
    EXPECT_EQ(IsUtf8(text), text.empty()) << text;
  }
  EXPECT_EQ(DecodeUtf8(std::string_view("\0", 1)).length, 1U);
}

TEST(Utf8, TheFirstBadByteDecides) {
  EXPECT_TRUE(IsUtf8("plain, \xc3\xa4, \xe2\x82\xac, \xf0\x9f\x98\x80"));
  EXPECT_FALSE(IsUtf8("plain, \xc3\xa4, \xe2\x82"));
}

}  // namespace
}  // namespace coffer
