// SPDX-License-Identifier: Apache-2.0
//
// A packet capture in the network that the egress process dials from: what leaves for an allowed call is one lookup of the
// allowed name and a connection to the address that was checked, and for a refused one nothing.
#include <gtest/gtest.h>
#include <stdlib.h>

#include "tests/support/run.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

TEST(EgressCapture, NothingButTheCheckedAddressIsContacted) {
  const char* const source = ::getenv("COFFER_SOURCE");
  ASSERT_NE(source, nullptr) << "COFFER_SOURCE must be the checkout";
  RunOptions options;
  options.timeout = Seconds(240);
  const RunResult run = RunProgram(
      {"python3", std::string(source) + "/tests/support/egress_capture.py", CofferPath()}, options);
  // The case, what the program inside printed, what the capture saw.
  const Strings expected = {
      // The same capture sees what a process outside of a boundary sends.
      "control | no | asked secret.evil.test, protocol 1 127.0.0.1, syn 127.0.0.3:9999, "
      "udp 127.0.0.3:53",
      "spliced | hello | asked good.test, syn 127.0.0.2:443",
      "spliced without a proxy | hello | asked good.test, syn 127.0.0.2:443",
      "judged | hello | asked good.test, syn 127.0.0.2:443",
      "another path | 403 | nothing",
      "another name | no | nothing",
      "another name without a proxy | no | nothing",
      "a name with a secret | no | nothing",
      "another port | no | nothing",
      "another port without a proxy | no | nothing",
      "a refused address | no | asked meta.test",
      // A client of the proxy learns first whether the server can be reached. No byte of its own goes there.
      "another server name | 0 | asked good.test, syn 127.0.0.2:443",
      "another server name without a proxy | 0 | nothing",
      "its own server name | 1 | asked good.test, syn 127.0.0.2:443",
      "not TLS without a proxy | 7 | nothing",                           // a TLS alert
      "without names | sent refused refused refused refused | nothing",  // the first to its loopback
      "no rules | no | nothing",
  };
  EXPECT_TRUE(Contains(run.out, expected.front())) << "NO-CONTROL\n" << run.out << run.err;
  EXPECT_EQ(Lines(run.out), expected) << "OPEN\n" << run.out << run.err;
}

}  // namespace
}  // namespace coffer::test
