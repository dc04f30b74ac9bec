// SPDX-License-Identifier: Apache-2.0
#include "policy/egress_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>

namespace coffer::policy {
namespace {

using testing::HasSubstr;

EgressRule Allow(std::string_view text) {
  auto rule = ParseAllow(text);
  EXPECT_TRUE(rule.ok()) << text << ": " << (rule.ok() ? "" : rule.error().message);
  return rule.ok() ? *rule : EgressRule();
}

EgressConnect Connect(std::string_view host, uint16_t port) {
  return {HostName::Parse(host).value(), port};
}

EgressRequest Request(std::string_view method, bool tls, std::string_view host, uint16_t port,
                      std::string_view path) {
  return {HostName::Parse(host).value(), port, tls, std::string(method),
          UrlPath::Parse(path).value()};
}

TEST(EgressRule, WhatAllowMeans) {
  struct Case {
    const char* text;
    TlsMode tls;
    uint16_t port;
    const char* shown;
  };
  const Case kCases[] = {
      {"api.example.com", TlsMode::kSplice, 443, "api.example.com:443"},
      {"api.example.com:8443", TlsMode::kSplice, 8443, "api.example.com:8443"},
      {"*.example.com", TlsMode::kSplice, 443, "*.example.com:443"},
      {"**.example.com:8443", TlsMode::kSplice, 8443, "**.example.com:8443"},
      {"https://api.example.com", TlsMode::kSplice, 443, "api.example.com:443"},
      {"https://api.example.com/**", TlsMode::kSplice, 443, "api.example.com:443"},
      {"https://api.example.com/v1/**", TlsMode::kIntercept, 443, "https://api.example.com/v1/**"},
      {"https://api.example.com/", TlsMode::kIntercept, 443, "https://api.example.com/"},
      {"GET https://api.example.com/v1/**", TlsMode::kIntercept, 443,
       "GET https://api.example.com/v1/**"},
      {"GET,HEAD https://a.example.com:444/x", TlsMode::kIntercept, 444,
       "GET,HEAD https://a.example.com:444/x"},
      {"GET https://api.example.com", TlsMode::kIntercept, 443, "GET https://api.example.com/**"},
      {"http://api.example.com/v1/*", TlsMode::kPlain, 80, "http://api.example.com/v1/*"},
      {"POST http://api.example.com:8080", TlsMode::kPlain, 8080,
       "POST http://api.example.com:8080/**"},
      {"git.example.com:22", TlsMode::kNone, 22, "tcp://git.example.com:22"},
      {"tcp://db.example.com:5432", TlsMode::kNone, 5432, "tcp://db.example.com:5432"},
      {"intranet", TlsMode::kSplice, 443, "intranet:443"},
      {"192.0.2.7:5432", TlsMode::kSplice, 5432, "192.0.2.7:5432"},
      {"[2001:db8::1]:443", TlsMode::kSplice, 443, "[2001:db8::1]:443"},
      {"B\xc3\xbc"
       "cher.example",
       TlsMode::kSplice, 443, "xn--bcher-kva.example:443"},
  };
  for (const Case& c : kCases) {
    const EgressRule rule = Allow(c.text);
    EXPECT_EQ(rule.tls, c.tls) << c.text;
    EXPECT_EQ(rule.ports, (std::vector<PortRange>{{c.port, c.port}})) << c.text;
    EXPECT_EQ(rule.text(), c.shown);
    EXPECT_EQ(ParseAllow(rule.text()).value(), rule) << "what is shown means the same";
  }
}

TEST(EgressRule, WhatAllowRefuses) {
  for (const char* text : {"",
                           "*",
                           "**",
                           "*.com",
                           "**.co.uk",
                           "*.github.io",
                           "localhost",
                           "localhost:8080",
                           "a.localhost",
                           "metadata.google.internal",
                           "api.example.com/",
                           "api.example.com/v1",
                           "GET api.example.com",
                           "get https://api.example.com/",
                           "GET, https://api.example.com/",
                           "CONNECT https://api.example.com/",
                           "GET  https://api.example.com/",
                           "https://user@api.example.com/",
                           "https://api.example.com/?q",
                           "https://api.example.com/a*",
                           "https://api.example.com/../x",
                           "https://api.example.com/%2e",
                           "https:///x",
                           "https://",
                           "ftp://api.example.com",
                           "tcp://api.example.com",
                           "tcp://api.example.com:22/x",
                           "api.example.com:0",
                           "api.example.com:",
                           "a.example.com,b.example.com",
                           "api.example.com.",
                           "HTTPS://api.example.com",
                           "api.example.com:443-445",
                           "a.*.example.com"}) {
    const auto rule = ParseAllow(text);
    ASSERT_FALSE(rule.ok()) << text << " became " << rule->text();
    EXPECT_FALSE(rule.error().hint.empty()) << text;
  }
}

// Mistakes of a first day: what is wrong, and what to write instead.
TEST(EgressRule, WhatIsMeantIsNamed) {
  struct Case {
    const char* text;
    const char* message;
    const char* hint;
  };
  for (const Case& c :
       {Case{"a.example.com,b.example.com", "one host", "--allow is repeated"},
        Case{"*", "every host", "--hold"}, Case{"https://*/v1/**", "every host", "--hold"},
        Case{"localhost:5432", "the host itself", "tcp://server.test:5432"},
        Case{"http://localhost", "the host itself", "tcp://server.test:80"}}) {
    const auto rule = ParseAllow(c.text);
    ASSERT_FALSE(rule.ok()) << c.text;
    EXPECT_NE(rule.error().message.find(c.message), std::string::npos) << rule.error().message;
    EXPECT_NE(rule.error().hint.find(c.hint), std::string::npos) << rule.error().hint;
  }
}

TEST(EgressRule, EmptyDenies) {
  const EgressVerdict verdict = Judge({}, Connect("api.example.com", 443));
  EXPECT_FALSE(verdict.allowed());
  EXPECT_EQ(verdict.reason, "host_not_allowed");
  EXPECT_EQ(verdict.fix, "--allow api.example.com");
  EXPECT_FALSE(Judge({}, Request("GET", true, "api.example.com", 443, "/")).allowed());
  const EgressRule nothing;
  EXPECT_FALSE(Judge(std::span(&nothing, 1), Connect("api.example.com", 443)).allowed());
}

TEST(EgressRule, HostPortMethodAndPathAreJudged) {
  const std::vector<EgressRule> rules = {
      Allow("api.test:8443"), Allow("GET https://www.test/v1/**"), Allow("http://old.test/pub/**")};
  EXPECT_EQ(Judge(rules, Connect("api.test", 8443)).rule, &rules[0]);
  EXPECT_EQ(Judge(rules, Connect("www.test", 443)).rule, &rules[1]);
  EXPECT_EQ(Judge(rules, Connect("api.test", 443)).reason, "port_not_allowed");
  EXPECT_EQ(Judge(rules, Connect("api.test", 22)).fix, "--allow api.test:22");
  for (const char* other : {"evilapi.test", "api.test.evil.test", "a.api.test"}) {
    EXPECT_EQ(Judge(rules, Connect(other, 8443)).reason, "host_not_allowed");
  }
  const auto www = [&](const char* method, const char* path) {
    return Judge(rules, Request(method, true, "www.test", 443, path));
  };
  EXPECT_TRUE(www("GET", "/v1/x").allowed());
  EXPECT_EQ(www("POST", "/v1/x").reason, "method_not_allowed");
  EXPECT_EQ(www("POST", "/v1/x").fix, "--allow 'POST https://www.test/v1/x'");
  EXPECT_EQ(www("GET", "/v2/x").reason, "path_not_allowed");
  EXPECT_EQ(www("GET", "/v1/../v2/x").reason, "path_not_allowed");
  EXPECT_EQ(Judge(rules, Request("GET", false, "www.test", 443, "/v1/x")).reason, "tls_required");
  EXPECT_TRUE(Judge(rules, Request("GET", false, "old.test", 80, "/pub/a")).allowed());
  EXPECT_EQ(Judge(rules, Request("GET", false, "old.test", 80, "/a")).reason, "path_not_allowed");
  EXPECT_EQ(Judge(rules, Request("GET", true, "old.test", 80, "/pub/a")).reason, "plain_only");
  EXPECT_FALSE(Judge(rules, Request("GET", false, "api.test", 8443, "/")).allowed())
      << "a rule for TLS allows nothing in the clear";
}

TEST(EgressRule, TheFixAllowsWhatWasDenied) {
  const auto value = [](std::string fix) {
    EXPECT_THAT(fix, testing::StartsWith("--allow "));
    fix.erase(0, 8);
    std::erase(fix, '\'');
    return fix;
  };
  for (const char* path : {"/", "/v1/x", "/a%20b/c", "/v1/it's/x", "/a/$(id)", "/a;b", "/%2A/x"}) {
    const EgressRequest request = Request("DELETE", true, "api.test", 8443, path);
    const EgressVerdict verdict = Judge({}, request);
    const EgressRule rule = Allow(value(verdict.fix));
    EXPECT_TRUE(Judge(std::span(&rule, 1), request).allowed()) << path << ": " << verdict.fix;
    EXPECT_EQ(std::count(verdict.fix.begin(), verdict.fix.end(), '\''), 2) << verdict.fix;
    EXPECT_THAT(verdict.fix, testing::Not(HasSubstr("$"))) << "pasted into a shell";
  }
  // A number needs the address too.
  const std::string both = value(Judge({}, Connect("2001:db8::1", 25)).fix);
  const size_t second = both.find(" --dangerously-allow-address 2001:db8::1/128");
  ASSERT_NE(second, std::string::npos) << both;
  const EgressRule rule = Allow(both.substr(0, second));
  EXPECT_TRUE(Judge(std::span(&rule, 1), Connect("2001:db8::1", 25)).allowed());
}

TEST(EgressRule, NoFixIsNamedThatWouldBeRefused) {
  for (const char* host : {"localhost", "a.localhost", "metadata.google.internal", "0.0.0.0",
                           "::", "224.0.0.1", "255.255.255.255", "ff02::1"}) {
    EXPECT_EQ(Judge({}, Connect(host, 80)).fix, "") << host;
    EXPECT_EQ(Judge({}, Request("GET", false, host, 80, "/")).fix, "") << host;
    EXPECT_EQ(ConnectFix({}, Connect(host, 80)), "") << host;
  }
  EXPECT_EQ(Judge({}, Connect("api.test", 80)).fix, "--allow api.test:80") << "the control";
  EXPECT_EQ(Judge({}, Connect("169.254.169.254", 80)).fix,
            "--allow 169.254.169.254:80 --dangerously-allow-address 169.254.169.254/32");
  EXPECT_EQ(Judge({}, Request("GET", false, "192.168.1.1", 80, "/x")).fix,
            "--allow 'GET http://192.168.1.1/x' --dangerously-allow-address 192.168.1.1/32");
  EXPECT_EQ(Judge({}, Connect("::ffff:10.0.0.1", 443)).fix.find("::ffff:10.0.0.1/"),
            std::string::npos)
      << "the guard compares the IPv4 address";

  EgressRule rule = Allow("api.test");
  rule.of_tool = true;
  const auto fix = [&](const char* host) {
    return Judge(std::span(&rule, 1), Connect(host, 443)).fix;
  };
  EXPECT_EQ(fix("other.test"), "[[network.allow]] host = \"other.test\", tls = \"splice\"");
  EXPECT_EQ(fix("192.168.1.1"),
            "[[network.allow]] dangerously_host = \"192.168.1.1\", tls = \"splice\", and [egress] "
            "dangerously_addresses = [\"192.168.1.1/32\"] in the configuration");
  EXPECT_EQ(fix("127.0.0.1"), "") << "no manifest can name it";
  EXPECT_EQ(fix("localhost"), "");
}

TEST(EgressRule, OrderDoesNotMatterAndDenyWins) {
  std::vector<EgressRule> rules = {Allow("GET https://api.test/v1/**"), Allow("api.test"),
                                   Allow("**.api.test"), Allow("tcp://b.api.test:443")};
  rules[1].bytes_out = 100;
  const auto by = [](const EgressRule& a, const EgressRule& b) { return a.text() < b.text(); };
  std::sort(rules.begin(), rules.end(), by);
  do {
    // The widest: spliced before intercepted, without a limit before with one.
    EXPECT_EQ(Judge(rules, Connect("api.test", 443)).rule->text(), "**.api.test:443");
    EXPECT_EQ(Judge(rules, Connect("b.api.test", 443)).rule->tls, TlsMode::kNone);
  } while (std::next_permutation(rules.begin(), rules.end(), by));

  // Rules that show the same text and differ in one limit, and in what the text leaves out.
  const auto limited = [](auto change) {
    EgressRule rule = Allow("GET https://api.test");
    change(rule);
    return rule;
  };
  const auto rate = [&](const char* text) {
    return limited([&](EgressRule& rule) { rule.rate = ParseRate(text).value(); });
  };
  const std::vector<EgressRule> narrower[] = {
      {limited([](EgressRule&) {}), rate("1000/s"), rate("1/d")},
      {rate("2/s"), rate("100/m"), rate("5000/h")},
      {rate("60/m"), rate("1/s"), rate("10/h")},
      {limited([](EgressRule& rule) { rule.connections = 2; }),
       limited([](EgressRule& rule) { rule.connections = 1; }),
       limited([](EgressRule& rule) { rule.time = std::chrono::seconds(1); }), rate("1/d")},
      {limited([](EgressRule&) {}), limited([](EgressRule& rule) { rule.paths = {"/**"}; }),
       limited([](EgressRule& rule) { rule.of_tool = true; })},
  };
  for (const std::vector<EgressRule>& given : narrower) {
    std::vector<size_t> order(given.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::optional<EgressRule> first;
    do {
      std::vector<EgressRule> some;
      for (const size_t at : order) {
        some.push_back(given[at]);
      }
      const EgressRule winner = *Judge(some, Request("GET", true, "api.test", 443, "/x")).rule;
      EXPECT_TRUE(!first || winner == *first) << "the order decides";
      first = winner;
    } while (std::next_permutation(order.begin(), order.end()));
    if (given[0].rate || given[1].rate) {
      EXPECT_EQ(first->rate, given[0].rate) << "the wider one";
    }
  }

  EgressRule deny = Allow("GET https://b.api.test/v1/**");
  deny.deny = true;
  for (const size_t at : {size_t{0}, rules.size()}) {
    std::vector<EgressRule> with = rules;
    with.insert(with.begin() + static_cast<long>(at), deny);
    EXPECT_EQ(Judge(with, Connect("b.api.test", 443)).reason, "host_denied");
    EXPECT_EQ(Judge(with, Request("POST", true, "b.api.test", 443, "/x")).reason, "host_denied")
        << "methods and paths do not narrow a denial";
    EXPECT_TRUE(Judge(with, Connect("c.api.test", 443)).allowed());
  }
  EXPECT_FALSE(Judge(std::span(&deny, 1), Connect("c.api.test", 443)).allowed())
      << "a denial allows nothing";
}

TEST(EgressRule, AskOpensNothingByItself) {
  EgressRule rule = Allow("GET https://api.test/v1/**");
  const auto judge = [&](const auto& what) { return Judge(std::span(&rule, 1), what); };
  EXPECT_TRUE(judge(Request("GET", true, "api.test", 443, "/v1/x")).allowed()) << "the control";
  rule.ask = true;
  const EgressVerdict asks = judge(Request("GET", true, "api.test", 443, "/v1/x"));
  EXPECT_FALSE(asks.allowed());
  EXPECT_EQ(asks.asks, &rule);
  EXPECT_EQ(judge(Connect("api.test", 443)).asks, &rule);
  EXPECT_EQ(judge(Request("POST", true, "api.test", 443, "/v1/x")).asks, nullptr);
  EXPECT_EQ(judge(Request("GET", true, "api.test", 443, "/v2/x")).asks, nullptr);
  EXPECT_EQ(judge(Connect("api.test", 444)).asks, nullptr);
  EXPECT_EQ(judge(Connect("other.test", 443)).asks, nullptr);
}

TEST(EgressRule, WhatIsAllowedOrDeniedIsNotAskedFor) {
  EgressRule ask = Allow("**.api.test");
  ask.ask = true;
  EgressRule deny = Allow("b.api.test");
  deny.deny = true;
  const std::vector<EgressRule> rules = {ask, Allow("a.api.test"), deny};
  EXPECT_TRUE(Judge(rules, Connect("a.api.test", 443)).allowed());
  EXPECT_EQ(Judge(rules, Connect("a.api.test", 443)).asks, nullptr);
  EXPECT_EQ(Judge(rules, Connect("b.api.test", 443)).reason, "host_denied");
  EXPECT_EQ(Judge(rules, Connect("b.api.test", 443)).asks, nullptr);
  EXPECT_EQ(Judge(rules, Connect("c.api.test", 443)).asks, rules.data());
}

}  // namespace
}  // namespace coffer::policy
