// SPDX-License-Identifier: Apache-2.0
//
// Name servers that a program asks past the resolver of its boundary: by UDP and TCP, over TLS and over HTTPS, at the host's own
// server and at one of the internet.
#include <gtest/gtest.h>
#include <stdlib.h>

#include "tests/support/run.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

TEST(EgressDns, NW_03_NoNameServerIsAskedPastTheResolver) {
  const char* const source = ::getenv("COFFER_SOURCE");
  ASSERT_NE(source, nullptr) << "COFFER_SOURCE must be the checkout";
  RunOptions options;
  options.timeout = Seconds(240);
  const RunResult run = RunProgram(
      {"python3", std::string(source) + "/tests/support/egress_dns.py", CofferPath()}, options);
  const std::string direct =
      "near-udp=refused near-plain=refused far-udp=refused far-plain=refused far-dot=refused "
      "far-doh=refused ";
  // The case, what the program said, what the servers counted.
  const Strings expected = {
      "outside | near-udp=answered near-plain=answered far-udp=answered far-plain=answered "
      "far-dot=answered far-doh=answered | far tcp 443 1, far tcp 53 1, far tcp 853 1, far udp 1, "
      "near tcp 53 1, near udp 1",
      // The boundary's own resolver says that there is no such name (code 3), and asks no other.
      "a rule | " + direct +
          "own-udp=code-3 own-plain=code-3 proxied-8.8.8.8:53=403 proxied-8.8.8.8:853=403 "
          "proxied-8.8.8.8:443=403 proxied-good.test:53=403 proxied-good.test:853=403 | nothing",
      "no rule | " + direct +
          "own-udp=refused own-plain=refused proxied-8.8.8.8:53=refused "
          "proxied-8.8.8.8:853=refused proxied-8.8.8.8:443=refused proxied-good.test:53=refused "
          "proxied-good.test:853=refused | nothing",
  };
  EXPECT_TRUE(Contains(run.out, expected.front())) << "NO-CONTROL\n" << run.out << run.err;
  EXPECT_EQ(Lines(run.out), expected) << "OPEN\n" << run.out << run.err;
}

// A host that completes names, as many companies' do: an allowed name that does not exist is not looked for below another
// domain, whose owner would learn of it and could answer.
TEST(EgressDns, NW_10_AnAllowedNameIsNotCompleted) {
  const char* const source = ::getenv("COFFER_SOURCE");
  ASSERT_NE(source, nullptr) << "COFFER_SOURCE must be the checkout";
  RunOptions options;
  options.timeout = Seconds(240);
  const RunResult run = RunProgram(
      {"python3", std::string(source) + "/tests/support/egress_search.py", CofferPath()}, options);
  const Strings expected = {
      "outside | found 127.0.0.2 | missing.good.test.evil.test",
      "a rule | 502 | missing.good.test",
      "a wildcard | 502 | missing.good.test",
  };
  EXPECT_TRUE(Contains(run.out, expected.front())) << "NO-CONTROL\n" << run.out << run.err;
  EXPECT_EQ(Lines(run.out), expected) << "OPEN\n" << run.out << run.err;
}

}  // namespace
}  // namespace coffer::test
