// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/json_pieces.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

namespace coffer::gateway {
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

TEST(JsonPieces, ACutIsBetweenCharacters) {
  EXPECT_EQ(CutAtCharacter("abc", 5), 3U);
  EXPECT_EQ(CutAtCharacter("a\xe2\x82\xac", 3), 1U);
  EXPECT_EQ(CutAtCharacter("ab\xc3\xbc", 2), 2U);
  EXPECT_EQ(CutAtCharacter("\x80\x80\x80\x80\x80\x80", 5), 5U) << "not UTF-8: it must get on";
}

}  // namespace
}  // namespace coffer::gateway
