// SPDX-License-Identifier: Apache-2.0
#include "policy/never_send.h"

#include <gtest/gtest.h>

#include "policy/egress_grants.h"

namespace coffer::policy {
namespace {

TEST(NeverSend, OneValueOnALine) {
  const auto values = ParseNeverSend("\nfirst value\n\n#is-no-comment\nschl\xc3\xbcssel\n12345678");
  ASSERT_TRUE(values.ok()) << values.error().message;
  ASSERT_EQ(values->size(), 4U);
  EXPECT_EQ(values->at(0).line, 2U);
  EXPECT_EQ(values->at(0).value, "first value");
  EXPECT_EQ(values->at(1).line, 4U);
  EXPECT_EQ(values->at(1).value, "#is-no-comment");
  EXPECT_EQ(values->at(3).line, 6U);
}

TEST(NeverSend, AMistakeNamesItsLineAndNotItsValue) {
  const std::string long_one(257, 'q');
  const std::pair<std::string, const char*> mistakes[] = {
      {"12345678\nqqqqqqq\n", "line 2 has 7 bytes"},
      {long_one, "line 1 has 257 bytes"},
      {"qqqqqqqqq\r\n", "line 1 holds a control character"},
      {std::string("qqqqqqqq\0q", 10), "line 1 holds a control character"},
      {"qqqqqqqq\xff", "line 1 holds a control character or is not UTF-8"},
      {"12345678\n\n qqqqqqqq\n", "line 3 begins or ends with a space"},
      {"qqqqqqqq \n", "line 1 begins or ends with a space"},
      {"\xef\xbb\xbfqqqqqqqq\n", "line 1 begins with a byte order mark"},
      {"", "no value"},
      {"\n\n", "no value"},
  };
  for (const auto& [text, message] : mistakes) {
    const auto values = ParseNeverSend(text);
    ASSERT_FALSE(values.ok()) << message;
    EXPECT_EQ(values.error().kind, ErrorKind::kRefused);
    EXPECT_NE(values.error().message.find(message), std::string::npos) << values.error().message;
    EXPECT_EQ((values.error().message + values.error().hint).find("qqq"), std::string::npos);
    EXPECT_NE(values.error().hint, "");
  }
  EXPECT_TRUE(ParseNeverSend(std::string(256, 'q')).ok());
}

TEST(NeverSend, AtMost64) {
  std::string text;
  for (int i = 0; i < 64; ++i) {
    text += "value-" + std::to_string(100 + i) + "\n";
  }
  EXPECT_TRUE(ParseNeverSend(text).ok());
  EXPECT_FALSE(ParseNeverSend(text + "one-more\n").ok());
}

TEST(NeverSend, GrantsHoldThem) {
  EgressTexts texts;
  texts.allow = {"https://api.example.com/v1/**"};
  texts.never_send = "12345678\n";
  EXPECT_EQ(ParseGrants(texts)->never_send.size(), 1U);
  texts.never_send = "1234567\n";
  const auto refused = ParseGrants(texts);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("--never-send: line 1"), std::string::npos);
}

TEST(NeverSend, SomeRulesJudgeRequests) {
  const auto judges = [](const std::string& rule) {
    EgressTexts texts;
    texts.allow = {rule};
    return ParseGrants(texts)->judges();
  };
  EXPECT_TRUE(judges("https://api.example.com/v1/**"));
  EXPECT_TRUE(judges("http://api.example.com"));
  EXPECT_FALSE(judges("api.example.com"));
  EXPECT_FALSE(judges("tcp://api.example.com:5432"));
}

}  // namespace
}  // namespace coffer::policy
