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

TEST(EgressGrants, CeilingsBoundEveryRule) {
  EgressTexts texts;
  texts.of_tool = true;
  texts.allow = {"api.example.com", "**.example.net"};
  ASSERT_TRUE(
      Judge(ParseGrants(texts)->rules, EgressConnect{HostName::Parse("a.example.net").value(), 443})
          .allowed())
      << "the control";
  texts.deny = {"*.example.net", "api.example.com:444"};
  texts.most_bytes_out = 100;
  const Result<ParsedGrants> parsed = ParseGrants(texts);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  const auto judge = [&](const char* host, uint16_t port) {
    return Judge(parsed->rules, EgressConnect{HostName::Parse(host).value(), port});
  };
  EXPECT_EQ(judge("a.example.net", 443).reason, "host_denied");
  EXPECT_TRUE(judge("example.net", 443).allowed());
  EXPECT_TRUE(judge("api.example.com", 443).allowed());
  EXPECT_EQ(judge("api.example.com", 444).reason, "host_denied");
  EXPECT_EQ(parsed->rules[0].bytes_out, 100U);
  EXPECT_EQ(parsed->rules[0].bytes_in, 0U) << "no limit stays none";
}

TEST(EgressGrants, HoldAsksForEveryNameAndOpensNone) {
  EgressTexts texts;
  texts.hold = true;
  EXPECT_FALSE(texts.empty());
  const Result<ParsedGrants> parsed = ParseGrants(texts);
  ASSERT_TRUE(parsed.ok());
  for (const uint16_t port : {uint16_t{1}, uint16_t{22}, uint16_t{443}, uint16_t{65535}}) {
    const EgressVerdict verdict =
        Judge(parsed->rules, EgressConnect{HostName::Parse("a.example.com").value(), port});
    EXPECT_FALSE(verdict.allowed());
    ASSERT_NE(verdict.asks, nullptr) << port;
    EXPECT_EQ(verdict.asks->tls, port == 22 ? TlsMode::kNone : TlsMode::kSplice);
  }
}

TEST(EgressGrants, AnUpstreamProxyIsForNamesThatItCovers) {
  EgressTexts texts;
  texts.allow = {"**.example.com"};
  texts.upstream_proxy = "http://10.0.0.1:3128/";
  EXPECT_TRUE(ParseGrants(texts)->is_proxied(HostName::Parse("other.test").value()));
  EXPECT_FALSE(ParseGrants(texts)->is_proxied(HostName::Parse("192.0.2.1").value()));
  texts.proxied = {"**.example.com"};
  EXPECT_TRUE(ParseGrants(texts)->is_proxied(HostName::Parse("a.example.com").value()));
  EXPECT_FALSE(ParseGrants(texts)->is_proxied(HostName::Parse("other.test").value()));
  for (const char* const wrong : {"proxy.test:3128", "https://proxy.test:3128", "http://proxy.test",
                                  "http://a@proxy.test:1", "http://proxy.test:1/x", "http://:1"}) {
    EXPECT_FALSE(ParseUpstreamProxy(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace coffer::policy
