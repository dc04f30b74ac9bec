// SPDX-License-Identifier: Apache-2.0
//
// A program that says something by the names it asks for: below a wildcard it chooses the labels, and a name server counts
// what arrives.
#include <gtest/gtest.h>
#include <stdlib.h>

#include "tests/support/run.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

TEST(EgressLookups, NamesBelowAWildcardAreBounded) {
  const char* const source = ::getenv("COFFER_SOURCE");
  ASSERT_NE(source, nullptr) << "COFFER_SOURCE must be the checkout";
  RunOptions options;
  options.timeout = Seconds(280);
  const RunResult run = RunProgram(
      {"python3", std::string(source) + "/tests/support/egress_lookups.py", CofferPath()}, options);
  // The case, what the program was answered, what the server was asked. 403: looked up, and not dialled. 429: not looked up.
  const Strings expected = {
      "outside | found=1100 | names 1100 bytes 6600 most 1",
      "a few | 403=20 | names 20 bytes 120 most 1",
      "each way | connect=403 absolute=403 socks=socks-2 ssh=403 judged=403 direct=403 | names 6 "
      "bytes 53 most 1",
      "one name | 403=50 | names 1 bytes 6 most 1",
      "short names | 403=1024 429=76 | names 1024 bytes 6144 most 1",
      // 198 bytes each: 82 of them fit into 16,384.
      "long names | 403=82 429=18 | names 82 bytes 16236 most 1",
      "past the bound | connect=429 absolute=429 socks=socks-2 ssh=429 judged=429 direct=429 "
      "kept=403 written=403 | names 1024 bytes 6144 most 1 good.test",
  };
  for (size_t control = 0; control < 3; ++control) {
    EXPECT_TRUE(Contains(run.out, expected[control])) << "NO-CONTROL\n" << run.out << run.err;
  }
  EXPECT_EQ(Lines(run.out), expected) << "OPEN\n" << run.out << run.err;
}

}  // namespace
}  // namespace coffer::test
