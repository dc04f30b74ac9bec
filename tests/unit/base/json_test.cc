// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/bounded_json.h"

namespace coffer {
namespace {

std::string Nested(int depth, const char* open, const char* close, const char* core) {
  std::string text;
  for (int i = 0; i < depth; ++i) {
    text += open;
  }
  text += core;
  for (int i = 0; i < depth; ++i) {
    text += close;
  }
  return text;
}

TEST(JsonText, DepthIsBounded) {
  EXPECT_TRUE(ParseJson(Nested(kMaxJsonDepth, "[", "]", "")).ok());
  EXPECT_TRUE(ParseJson(Nested(kMaxJsonDepth - 1, "{\"a\":", "}", "1")).ok());
  for (const int depth : {kMaxJsonDepth + 2, 1000, 100000}) {
    EXPECT_FALSE(ParseJson(Nested(depth, "[", "]", "")).ok()) << depth;
    EXPECT_FALSE(ParseJson(Nested(depth, "{\"a\":", "}", "1")).ok()) << depth;
  }
  EXPECT_FALSE(ParseJson(std::string(1 << 20, '[')).ok());
}

TEST(JsonText, DuplicateKeysAreRefused) {
  EXPECT_FALSE(ParseJson(R"({"a":1,"a":2})").ok());
  EXPECT_FALSE(ParseJson(R"({"x":{"a":1,"b":2,"a":3}})").ok());
  EXPECT_FALSE(ParseJson(R"([{"a":1},{"\u0062":1,"b":2}])").ok())
      << "the same key, written differently";
  EXPECT_TRUE(ParseJson(R"({"a":{"a":1},"b":[{"a":1},{"a":2}]})").ok())
      << "the same key in different objects";
}

TEST(JsonText, OneDocumentOrNothing) {
  for (const char* text :
       {"",       " ",       "{",           "}",    "[1,]",         "{\"a\":1,}", "{a:1}",
        "'a'",    "1 2",     "{} {}",       "nul",  "NaN",          "+1",         "01",
        "\"\n\"", "// x\n1", "\"\\ud800\"", "[1]x", "\xef\xbb\xbf", "1e999999"}) {
    EXPECT_FALSE(ParseJson(text).ok()) << text;
  }
  EXPECT_FALSE(ParseJson("\"\xff\"").ok());
  EXPECT_FALSE(ParseJson("\"\xc0\xaf\"").ok()) << "overlong";
  EXPECT_FALSE(ParseJson(std::string_view("1\0", 2)).ok());
  for (const char* text : {"null", "0", "-1.5e3", "\"\\u00e4\"", " [1, {}] \n"}) {
    EXPECT_TRUE(ParseJson(text).ok()) << text;
  }
}

TEST(JsonText, EachBoundHasItsName) {
  const JsonBounds bounds{.depth = 2, .values = 5, .exact_integers = true};
  const auto code = [&](const std::string& text) {
    const Result<Json> json = ParseBoundedJson(text, bounds);
    return json.ok() ? "" : json.error().code;
  };
  EXPECT_EQ(code("[[1]]"), "");
  EXPECT_EQ(code("[[[1]]]"), "json.too_deep");
  EXPECT_EQ(code("[1,2,3,4]"), "");
  EXPECT_EQ(code("[1,2,3,4,5]"), "json.too_many");
  EXPECT_EQ(code(R"({"a":1,"\u0061":2})"), "json.duplicate");
  EXPECT_EQ(code("18446744073709551615"), "");
  EXPECT_EQ(code("18446744073709551616"), "json.number");
  EXPECT_EQ(code("1e999"), "json.number");
  EXPECT_EQ(code("[1"), "json.syntax");
  EXPECT_TRUE(ParseBoundedJson("18446744073709551616", {}).ok()) << "the control: nobody asked";
}

TEST(JsonText, WhatIsBuiltIsWhatWasWritten) {
  for (const char* text : {"null", "\"x\"", "[]", "{}",
                           R"({"z":{"b":[1,-2,2.5,null,true],"a":{}},"a":[[],{"k":"v"}]})",
                           R"([{"a":1},{"a":[{"b":[1]},2]},"end"])"}) {
    EXPECT_EQ(PrintJson(*ParseJson(text)), text);
    EXPECT_EQ(*ParseJson(text), Json::parse(text)) << "as the library builds it";
  }
}

TEST(JsonText, PrintingReplacesWhatIsNotUtf8) {
  Json json;
  json["a"] = std::string("x\xffy");
  const std::string text = PrintJson(json);
  EXPECT_EQ(text, "{\"a\":\"x\xef\xbf\xbdy\"}");
  EXPECT_TRUE(ParseJson(text).ok());
}

TEST(JsonText, OrderIsKept) {
  EXPECT_EQ(PrintJson(*ParseJson(R"({"z":1,"a":2,"m":[3]})")), R"({"z":1,"a":2,"m":[3]})");
}

}  // namespace
}  // namespace coffer
