// SPDX-License-Identifier: Apache-2.0
#include "base/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/json.h"

namespace coffer {
namespace {

std::string Quoted(std::string_view text) {
  std::string out = "before";
  AppendJsonText(text, &out);
  return out.substr(6);
}

TEST(JsonText, IsWhatTheLibraryPrints) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string one(1, static_cast<char>(byte));
    EXPECT_EQ(Quoted(one), PrintJson(Json(one))) << byte;
    EXPECT_EQ(Quoted("a" + one + "b"), PrintJson(Json("a" + one + "b"))) << byte;
  }
  for (const char* text :
       {"", "\"", "\\", "\\\\\"", "ä", "\xf0\x9f\x99\x82", "\xed\xa0\x80", "\xf0\x9f",
        "\xe2\x80\xa8", "\x7f", "a\xff", "\xff\xff\xff", "\xe2\x80", "\xe2\x80\xff",
        "\xc3\xa4\xff\xc3\xa4", "\xff\xc3\xa4x", "\xe2\xe2\x80\xa8", "\xc3\n\xa4"}) {
    EXPECT_EQ(Quoted(text), PrintJson(Json(text))) << text;
  }
  std::minstd_rand random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (size_t size = random() % 30; text.size() < size;) {
      text += static_cast<char>(random() % (i % 2 == 0 ? 128 : 256));
    }
    EXPECT_EQ(Quoted(text), PrintJson(Json(text)));
  }
}

}  // namespace
}  // namespace coffer
