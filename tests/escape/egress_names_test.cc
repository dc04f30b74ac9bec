// SPDX-License-Identifier: Apache-2.0
//
// Which names the egress process looks up, and which addresses it dials, beside a DNS server that counts and lies.
#include <gtest/gtest.h>
#include <stdlib.h>

#include "tests/support/run.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

// A name that no rule allows is never looked up, so no part of it leaves. A name is looked up once for each connection, and
// what was found is what is dialled, if it may be: another answer a moment later changes nothing.
TEST(EgressNames, NW_04_NW_10_OnlyAllowedNamesAreLookedUpAndWhatWasCheckedIsDialled) {
  const char* const source = ::getenv("COFFER_SOURCE");
  ASSERT_NE(source, nullptr) << "COFFER_SOURCE must be the checkout";
  const std::string coffer = CofferPath();
  const RunResult run =
      RunProgram({"python3", std::string(source) + "/tests/support/egress_names.py",
                  coffer.substr(0, coffer.rfind('/')) + "/cofferd"});
  const Strings expected = {
      "good.test 200 asked good.test dialled 127.0.0.2",  // the control
      "secret.evil.test 403 asked nothing dialled nothing",
      "good.test.evil.test 403 asked nothing dialled nothing",
      "a.zone.test 200 asked a.zone.test dialled 127.0.0.2",  // the control
      "zone.test 403 asked nothing dialled nothing",
      "missing.zone.test 502 asked missing.zone.test dialled nothing",
      "meta.test 403 asked meta.test dialled nothing",
      "private.test 403 asked private.test dialled nothing",
      "here.test 403 asked here.test dialled nothing",
      "rebind.test 200 asked rebind.test dialled 127.0.0.2",  // the control
      "rebind.test 403 asked rebind.test dialled nothing",
      // The boundary's resolver never asks another, allowed or not.
      "resolve good.test 198.18.1.0 asked nothing",
      "resolve secret.evil.test code 3 asked nothing",
      "resolve secret.zone.test 198.18.1.1 asked nothing",
      "resolve missing.zone.test 198.18.1.2 asked nothing",
      "resolve zone.test code 3 asked nothing",
      "ended 0",
      "in all 3",
  };
  EXPECT_TRUE(Contains(run.out, expected.front())) << "NO-CONTROL\n" << run.out << run.err;
  EXPECT_EQ(Lines(run.out), expected) << "OPEN\n" << run.out << run.err;
}

}  // namespace
}  // namespace coffer::test
