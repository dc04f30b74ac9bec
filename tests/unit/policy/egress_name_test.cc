// SPDX-License-Identifier: Apache-2.0
#include "policy/egress_name.h"

#include <gtest/gtest.h>

namespace coffer::policy {
namespace {

EgressRule Rule(std::string_view text) { return ParseAllow(text).value(); }

TEST(EgressName, ANameIsKnownIfOneOfItsPortsIsAllowed) {
  EgressRule denied = Rule("api.example.com");
  denied.deny = true;
  const EgressRule https = Rule("api.example.com");
  const EgressRule ssh = Rule("tcp://api.example.com:22");
  const HostName api = HostName::Parse("api.example.com").value();
  EXPECT_TRUE(JudgeName(std::vector{ssh}, api).allowed()) << "whatever the port";
  EXPECT_TRUE(JudgeName(std::vector{https, ssh, denied}, api).allowed()) << "port 22 is left";
  const EgressVerdict closed = JudgeName(std::vector{https, denied}, api);
  EXPECT_FALSE(closed.allowed());
  EXPECT_EQ(closed.reason, "host_denied");
  EXPECT_EQ(closed.fix, "");
  const EgressVerdict other =
      JudgeName(std::vector{https}, HostName::Parse("b.example.com").value());
  EXPECT_EQ(other.reason, "host_not_allowed");
  EXPECT_EQ(other.fix, "--allow b.example.com");
  EXPECT_FALSE(JudgeName({}, api).allowed()) << "no rule is no name";
}

}  // namespace
}  // namespace coffer::policy
