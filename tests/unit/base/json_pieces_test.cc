// SPDX-License-Identifier: Apache-2.0
#include "base/json_pieces.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

namespace coffer {
namespace {

std::string Joined(JsonPieces text) {
  std::string whole;
  for (std::string piece = text.Next(); !piece.empty(); piece = text.Next()) {
    EXPECT_LE(piece.size(), JsonPieces::kPieceBytes);
    whole += piece;
  }
  return whole;
}

// Wherever slices are cut, the text is the one that the whole string would have.
TEST(JsonPieces, SayTheSameAsOneString) {
  std::mt19937 random(7);
  const std::string letters[] = {
      "a", "\"", "\n", std::string(1, '\0'), "\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
  for (const size_t least : {0U, 1U, 8190U, 8192U, 100'000U, 1U << 20}) {
    std::string text;
    while (text.size() < least) {
      text += letters[random() % std::size(letters)];
    }
    JsonPieces pieces;
    pieces.Text(text);
    EXPECT_EQ(Joined(std::move(pieces)), PrintJson(Json(text))) << least;
  }
}

TEST(JsonPieces, WhatIsNotUtf8IsReplacedAndStillJson) {
  for (const char* odd : {"\xff", "\x80\x80\x80\x80\x80", "\xc3", "\xf0\x9f"}) {
    std::string text;
    while (text.size() < 50'000) {
      text += odd;
    }
    JsonPieces pieces;
    pieces.Text(text);
    EXPECT_TRUE(Json::accept(Joined(std::move(pieces))));
  }
}

// A list says the same as one that is printed at once, and its items are asked for only when a piece needs them.
TEST(JsonPieces, ItemsAreMadeWhenTheirTurnComes) {
  for (const size_t count : {0U, 1U, 2U, 5000U}) {
    for (const size_t bytes : {1U, 100U, 200'000U}) {
      if (count * bytes > 1'000'000) {
        continue;
      }
      Json list = Json::array();
      for (size_t i = 0; i < count; ++i) {
        list.push_back(std::to_string(i) + std::string(bytes, 'x'));
      }
      size_t made = 0;
      JsonPieces pieces;
      pieces.Raw("[");
      pieces.Items(
          [&](std::string* text) {
            if (made == count) {
              return false;
            }
            *text += PrintJson(list[made++]);
            return true;
          },
          count * bytes);
      pieces.Raw("]");
      EXPECT_EQ(made, 0U);
      EXPECT_EQ(pieces.source_bytes(), count * bytes + 2);
      std::string whole = pieces.Next();
      EXPECT_LE(made * bytes, JsonPieces::kPieceBytes + bytes) << "more than the piece needs";
      whole += Joined(std::move(pieces));
      EXPECT_EQ(whole, PrintJson(list)) << count << " of " << bytes;
    }
  }
}

TEST(JsonPieces, AWholeTextIsCutIntoPieces) {
  const std::string text = PrintJson(Json(std::string(300'000, 'y')));
  JsonPieces pieces;
  pieces.Raw(R"({"a":)");
  pieces.RawWhole(text);
  pieces.Raw("}");
  EXPECT_EQ(Joined(std::move(pieces)), R"({"a":)" + text + "}");
}

// A string of several parts, of which one stands in two strings: held once, and cut as one string would be.
TEST(JsonPieces, ATextInsideIsHeldOnce) {
  std::string odd;
  while (odd.size() < 100'000) {
    odd += "a\xe2\x82\xac\xff";
  }
  odd += "\xe2\x82";  // the part ends within a character
  const auto shared = std::make_shared<const std::string>(odd);
  JsonPieces inner;
  inner.Raw("\"<");
  inner.TextInside(shared);
  inner.Raw(R"(\n>",")");
  inner.TextInside(shared);
  inner.Raw("\"");
  EXPECT_EQ(inner.source_bytes(), odd.size() + 9);
  JsonPieces outer;
  outer.Raw("[");
  outer.Append(std::move(inner));
  outer.Raw("]");
  EXPECT_EQ(outer.source_bytes(), odd.size() + 11);
  EXPECT_EQ(outer.Rest(), PrintJson(Json::array({"<" + odd + "\n>", odd})));
  EXPECT_EQ(outer.Rest(), "");
}

TEST(JsonPieces, ACutIsBetweenCharacters) {
  EXPECT_EQ(CutAtCharacter("abc", 5), 3U);
  EXPECT_EQ(CutAtCharacter("a\xe2\x82\xac", 3), 1U);
  EXPECT_EQ(CutAtCharacter("ab\xc3\xbc", 2), 2U);
  EXPECT_EQ(CutAtCharacter("\x80\x80\x80\x80\x80\x80", 5), 5U) << "not UTF-8: it must get on";
}

}  // namespace
}  // namespace coffer
