// SPDX-License-Identifier: Apache-2.0
#include "policy/url_path.h"

#include <gtest/gtest.h>

#include <string>

namespace coffer::policy {
namespace {

using namespace std::string_literals;

TEST(UrlPath, OneFormIsJudgedAndSent) {
  const std::pair<std::string, std::string> kGood[] = {
      {"/", "/"},
      {"/v1/x", "/v1/x"},
      {"/v1/x/", "/v1/x/"},
      {"/v1//x", "/v1/x"},
      {"//v1/x", "/v1/x"},
      {"/v1/./x", "/v1/x"},
      {"/v1/x/.", "/v1/x/"},
      {"/v1/x/..", "/v1/"},
      {"/v1/../admin", "/admin"},
      {"/v1/%2e%2e/admin", "/admin"},
      {"/v1/%2E./admin", "/admin"},
      {"/v1//../admin", "/admin"},
      {"/%76%31/x", "/v1/x"},
      {"/a%20b", "/a%20b"},
      {"/a%c3%a4", "/a%C3%A4"},
      {"/a\xc3\xa4", "/a%C3%A4"},
      {"/a{b}|\"c\"", "/a%7Bb%7D%7C%22c%22"},
      {"/@scope%2fname", "/@scope%2Fname"},
      {"/100%25", "/100%25"},
      {"/a;b=c/d", "/a;b=c/d"},
      {"/v1/...", "/v1/..."},
  };
  for (const auto& [text, wanted] : kGood) {
    const auto path = UrlPath::Parse(text);
    ASSERT_TRUE(path.ok()) << text << ": " << path.error().message;
    EXPECT_EQ(path->text(), wanted);
    EXPECT_EQ(UrlPath::Parse(wanted)->text(), wanted) << "not stable";
  }
}

TEST(UrlPath, WhatServersReadInTwoWays) {
  for (const std::string& text : {""s,
                                  "v1"s,
                                  "*"s,
                                  "http://evil.test/"s,
                                  "/.."s,
                                  "/../admin"s,
                                  "/v1/../../admin"s,
                                  "/%2e%2e/admin"s,
                                  "/v1\\..\\admin"s,
                                  "/v1%5c..%5cadmin"s,
                                  "/v1/..;/admin"s,
                                  "/v1/..;x=1/admin"s,
                                  "/v1/.;/admin"s,
                                  "/v1/%2e%2e;/admin"s,
                                  "/v1/%2e%2e%3b/admin"s,
                                  "/v1/..%2fadmin"s,
                                  "/v1/a%2f..%2f..%2fadmin"s,
                                  "/v1/%2fadmin"s,
                                  "/v1/a%2f"s,
                                  "/v1/a%2f..;/x"s,
                                  "/v1/..%20/admin"s,
                                  "/v1/.%20%20;x/admin"s,
                                  "/v1/%252e%252e/admin"s,
                                  "/v1/%25252e/x"s,
                                  "/v1/%25%32%65/x"s,
                                  "/a%00"s,
                                  "/a%0d%0aHost:x"s,
                                  "/a\r\nb"s,
                                  "/a b"s,
                                  "/a#b"s,
                                  "/a?b"s,
                                  "/a%"s,
                                  "/a%2"s,
                                  "/a%zz"s,
                                  "/a%c0%ae%c0%ae/b"s,
                                  "/a%ff"s,
                                  "/a\xff"s,
                                  "/a%ed%a0%80"s,
                                  "/a\0b"s,
                                  "/a%7f"s,
                                  "/"s + std::string(9000, 'a')}) {
    const auto path = UrlPath::Parse(text);
    EXPECT_FALSE(path.ok()) << testing::PrintToString(text) << " became " << path->text();
  }
}

TEST(UrlPath, PatternsAreMatchedByParts) {
  const auto matches = [](const char* pattern, const char* path) {
    return UrlPath::Parse(path).value().Matches(pattern);
  };
  EXPECT_TRUE(matches("/**", "/"));
  EXPECT_TRUE(matches("/**", "/a/b"));
  EXPECT_TRUE(matches("/v1/**", "/v1/"));
  EXPECT_TRUE(matches("/v1/**", "/v1/a/b"));
  EXPECT_TRUE(matches("/v1/**", "/v1//a"));
  EXPECT_TRUE(matches("/v1/x", "/v1/%78"));
  EXPECT_TRUE(matches("/@a/**", "/%40a/b"));
  EXPECT_TRUE(matches("/v1/*/items", "/v1/7/items"));
  EXPECT_TRUE(matches("/v1/**", "/v1/group%2Fproject"));
  EXPECT_FALSE(matches("/v1/**", "/v1"));
  EXPECT_FALSE(matches("/v1/**", "/v10/x"));
  EXPECT_FALSE(matches("/v1/**", "/v1/../v2/x"));
  EXPECT_FALSE(matches("/v1/**", "/V1/x"));
  EXPECT_FALSE(matches("/v1/**", "/v1%2Fx")) << "one reading is below /v1, the other is not";
  EXPECT_FALSE(matches("/v1/*", "/v1/a%2Fb"));
  EXPECT_FALSE(matches("/v1/*/items", "/v1/a%2Fb/items"));
  EXPECT_FALSE(matches("/v1/*/items", "/v1//items"));
  EXPECT_FALSE(matches("/v1/*", "/v1/"));
  EXPECT_FALSE(matches("/v1/x", "/v1/x/"));
  EXPECT_FALSE(matches("", "/"));
  EXPECT_FALSE(matches("**", "/"));
}

}  // namespace
}  // namespace coffer::policy
