// SPDX-License-Identifier: Apache-2.0
#include "policy/egress_grants.h"

#include <gtest/gtest.h>

namespace coffer::policy {
namespace {

TEST(EgressGrants, TextsBecomeValues) {
  const Result<ParsedGrants> parsed =
      ParseGrants({{"api.example.com", "GET https://other.example.com/v1/**"},
                   {"api.example.com=192.0.2.7", "api.example.com=2001:db8::1"},
                   {"10.0.0.0/8", "127.0.0.1"},
                   ""});
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->rules.size(), 2u);
  EXPECT_TRUE(parsed->intercepts());
  ASSERT_EQ(parsed->resolve.count("api.example.com"), 1u);
  EXPECT_EQ(parsed->resolve.at("api.example.com").size(), 2u);
  EXPECT_EQ(parsed->addresses.size(), 2u);
}

TEST(EgressGrants, AHostAloneIsNotLookedInto) {
  const Result<ParsedGrants> parsed = ParseGrants({{"api.example.com:8443"}, {}, {}, ""});
  ASSERT_TRUE(parsed.ok());
  EXPECT_FALSE(parsed->intercepts());
}

TEST(EgressGrants, AMistakeNamesItsFlag) {
  const std::pair<EgressTexts, const char*> mistakes[] = {
      {{{"api..example.com"}, {}, {}, ""}, "--allow"},
      {{{""}, {}, {}, ""}, "--allow"},
      {{{"*"}, {}, {}, ""}, "--allow"},
      {{{"a.example.com"}, {"a.example.com"}, {}, ""}, "--resolve"},
      {{{"a.example.com"}, {"a.example.com=b.example.com"}, {}, ""}, "--resolve"},
      {{{"a.example.com"}, {"192.0.2.1=192.0.2.2"}, {}, ""}, "--resolve"},
      {{{"a.example.com"}, {"a.example.com=127.1"}, {}, ""}, "--resolve"},
      {{{"a.example.com"}, {}, {"10.0.0.1/8"}, ""}, "--dangerously-allow-address"},
      {{{"a.example.com"}, {}, {"0.0.0.0/0"}, ""}, "--dangerously-allow-address"},
      {{{"a.example.com"}, {}, {"localhost"}, ""}, "--dangerously-allow-address"},
  };
  for (const auto& [texts, flag] : mistakes) {
    const Result<ParsedGrants> parsed = ParseGrants(texts);
    ASSERT_FALSE(parsed.ok()) << flag;
    EXPECT_EQ(parsed.error().kind, ErrorKind::kRefused);
    EXPECT_NE(parsed.error().message.find(flag), std::string::npos) << parsed.error().message;
    EXPECT_NE(parsed.error().hint, "") << parsed.error().message;
  }
}

TEST(EgressGrants, TooManyAreRefused) {
  EgressTexts texts;
  texts.allow.assign(257, "a.example.com");
  EXPECT_FALSE(ParseGrants(texts).ok());
  texts.allow.pop_back();
  EXPECT_TRUE(ParseGrants(texts).ok());
}

}  // namespace
}  // namespace coffer::policy
