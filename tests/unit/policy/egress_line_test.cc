// SPDX-License-Identifier: Apache-2.0
#include "policy/egress_line.h"

#include <gtest/gtest.h>

namespace coffer::policy {
namespace {

NetworkRule Sample() {
  NetworkRule rule;
  rule.host = "*.example.com";
  rule.ports = {{443, 443}, {8000, 8080}};
  rule.methods = {"GET", "HEAD"};
  rule.paths = {"/v1/**", "/v2/*"};
  rule.bytes_out = 1000;
  rule.bytes_in = 2000;
  rule.rate = *ParseRate("10/s");
  rule.connections = 3;
  rule.time = std::chrono::seconds(30);
  return rule;
}

TEST(EgressLine, ARuleComesBackAsItWas) {
  const std::string line = EgressLine(Sample());
  EXPECT_EQ(line, EgressLine(Sample()));
  const Result<EgressRule> back = ParseEgressLine(line);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(back->host.text(), "*.example.com");
  EXPECT_EQ(back->ports, Sample().ports);
  EXPECT_EQ(back->tls, TlsMode::kIntercept);
  EXPECT_EQ(back->methods, Sample().methods);
  EXPECT_EQ(back->paths, Sample().paths);
  EXPECT_EQ(back->bytes_out, 1000U);
  EXPECT_EQ(back->bytes_in, 2000U);
  EXPECT_EQ(back->rate, Sample().rate);
  EXPECT_EQ(back->connections, 3U);
  EXPECT_EQ(back->time, std::chrono::seconds(30));
  EXPECT_FALSE(back->deny || back->ask);
}

// Two rules that differ in anything that is judged are two lines.
TEST(EgressLine, EveryTermIsInTheLine) {
  const std::string line = EgressLine(Sample());
  const auto changed = [&](auto change) {
    NetworkRule rule = Sample();
    change(rule);
    return EgressLine(rule) != line;
  };
  EXPECT_FALSE(changed([](NetworkRule&) {})) << "the control";
  EXPECT_TRUE(changed([](NetworkRule& r) { r.host = "**.example.com"; }));
  EXPECT_TRUE(changed([](NetworkRule& r) { r.any_host = true; }));
  EXPECT_TRUE(changed([](NetworkRule& r) { r.ports.pop_back(); }));
  EXPECT_TRUE(changed([](NetworkRule& r) { r.tls = TlsMode::kSplice; }));
  EXPECT_TRUE(changed([](NetworkRule& r) { r.tls = TlsMode::kPlain; }));
  EXPECT_TRUE(changed([](NetworkRule& r) { r.methods.pop_back(); }));
  EXPECT_TRUE(changed([](NetworkRule& r) { r.paths.pop_back(); }));
  EXPECT_TRUE(changed([](NetworkRule& r) { r.bytes_out = 0; }));
  EXPECT_TRUE(changed([](NetworkRule& r) { r.bytes_in = 0; }));
  EXPECT_TRUE(changed([](NetworkRule& r) { r.rate.reset(); }));
  EXPECT_TRUE(changed([](NetworkRule& r) { r.connections = 0; }));
  EXPECT_TRUE(changed([](NetworkRule& r) { r.time = std::chrono::seconds(31); }));
  EXPECT_TRUE(changed([](NetworkRule& r) { r.dangerous = true; }));
}

TEST(EgressLine, SetsAndDangersSayWhatTheyAre) {
  NetworkRule rule;
  rule.host = "@pypi";
  EXPECT_EQ(EgressLine(rule), "@pypi");
  EXPECT_TRUE(IsSetLine("@pypi"));
  rule = Sample();
  rule.any_host = true;
  rule.dangerous = true;
  const std::string line = EgressLine(rule);
  EXPECT_TRUE(IsDangerousLine(line));
  EXPECT_EQ(ParseEgressLine(line)->host.kind(), HostPattern::Kind::kAny);
  EXPECT_TRUE(IsSetName("py-pi_2"));
  for (const char* const bad : {"", "Pypi", "a b", "a.b", "@a"}) {
    EXPECT_FALSE(IsSetName(bad)) << bad;
  }
}

// An empty list of methods or paths means every one in an EgressRule: no line becomes such a rule where requests are judged.
TEST(EgressLine, NothingIsNotEverything) {
  NetworkRule rule = Sample();
  rule.methods.clear();
  EXPECT_FALSE(ParseEgressLine(EgressLine(rule)).ok());
  rule = Sample();
  rule.paths.clear();
  EXPECT_FALSE(ParseEgressLine(EgressLine(rule)).ok());
  rule = Sample();
  rule.ports.clear();
  EXPECT_FALSE(ParseEgressLine(EgressLine(rule)).ok());
  rule = Sample();
  rule.tls = TlsMode::kSplice;
  EXPECT_TRUE(ParseEgressLine(EgressLine(rule))->paths.empty()) << "there nothing is judged";
  for (const char* const broken : {"", "{}", "@pypi", "[]", "{\"host\":\"a.example.com\"}", "!"}) {
    EXPECT_FALSE(ParseEgressLine(broken).ok()) << broken;
  }
}

}  // namespace
}  // namespace coffer::policy
