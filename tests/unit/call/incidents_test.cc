// SPDX-License-Identifier: Apache-2.0
#include "call/incidents.h"

#include <gtest/gtest.h>

namespace coffer::call {
namespace {

using Strings = std::vector<std::string>;

audit::Denial DenialOf(const std::string& operation, const std::string& target,
                       const std::string& rule, uint64_t count = 1) {
  return {"egress", operation, target, rule, "", "", count};
}

TEST(Incidents, SystemCallsAndDestinationsOfOneReceipt) {
  audit::Receipt receipt;
  EXPECT_EQ(IncidentsOf(receipt), Strings());
  receipt.syscalls_denied = {{"chown", 3}, {"unshare", 1}};
  receipt.denials = {DenialOf("connect", "evil.test:443", "egress", 7),
                     DenialOf("request", "GET 169.254.169.254:80/latest/token", "egress.metadata"),
                     DenialOf("request", "PUT 169.254.169.254:80/latest/other", "egress.metadata"),
                     DenialOf("resolve", "metadata.google.internal", "egress.metadata"),
                     DenialOf("request", "GET [fe80::1]:80/", "egress.link_local", 2)};
  EXPECT_EQ(IncidentsOf(receipt),
            Strings({"namespace: unshare was tried once and denied",
                     "metadata: 169.254.169.254:80 and 1 other were tried 3 times and refused",
                     "link_local: [fe80::1]:80 was tried 2 times and refused"}))
      << "without the paths";
  EXPECT_EQ(IncidentKindsOf(receipt),
            (std::set<std::string_view>{"namespace", "metadata", "link_local"}));
}

}  // namespace
}  // namespace coffer::call
