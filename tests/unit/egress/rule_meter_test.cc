// SPDX-License-Identifier: Apache-2.0
#include "egress/rule_meter.h"

#include <gtest/gtest.h>

namespace coffer::egress {
namespace {

using policy::EgressRule;

EgressRule Rule() { return policy::ParseAllow("api.test").value(); }

TEST(RuleMeter, WithoutLimitsEverythingPasses) {
  RuleMeter meter{Rule()};
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(meter.Refusal(Nanos(i)));
    const MeteredUse use(meter, Nanos(i));
  }
  EXPECT_TRUE(meter.bytes().TakeOut(uint64_t{1} << 60));
  EXPECT_TRUE(meter.bytes().TakeIn(uint64_t{1} << 60));
  EXPECT_FALSE(meter.bytes().Spent());
}

TEST(RuleMeter, SoManyAtATime) {
  EgressRule rule = Rule();
  rule.connections = 2;
  RuleMeter meter{rule};
  std::optional<MeteredUse> first(std::in_place, meter, Nanos(0));
  const MeteredUse second(meter, Nanos(0));
  EXPECT_EQ(meter.Refusal(Nanos(0)), "its rule allows 2 at a time");
  first.reset();
  EXPECT_FALSE(meter.Refusal(Nanos(0))) << "one has ended";
}

TEST(RuleMeter, SoLong) {
  EXPECT_EQ(RuleMeter{Rule()}.EndOf(std::chrono::seconds(100)), Nanos(0)) << "never";
  EgressRule rule = Rule();
  rule.time = std::chrono::seconds(30);
  RuleMeter meter{rule};
  EXPECT_EQ(meter.EndOf(std::chrono::seconds(100)), std::chrono::seconds(130));
  EXPECT_EQ(meter.Overtime(), "its rule allows a connection or request 30s, and they are over");
}

TEST(RuleMeter, SoOften) {
  EgressRule rule = Rule();
  rule.rate = policy::ParseRate("2/m").value();
  RuleMeter meter{rule};
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(meter.Refusal(std::chrono::seconds(100)));
    const MeteredUse use(meter, std::chrono::seconds(100));
  }
  EXPECT_EQ(meter.Refusal(std::chrono::seconds(101)), "its rule allows 2/m");
  EXPECT_FALSE(meter.Refusal(std::chrono::seconds(200)));
}

TEST(RuleMeter, SoManyBytesOfOneCall) {
  EgressRule rule = Rule();
  rule.bytes_out = 10;
  RuleMeter meter{rule};
  EXPECT_TRUE(meter.bytes().TakeIn(1000)) << "the other way is not limited";
  EXPECT_TRUE(meter.bytes().TakeOut(6));
  EXPECT_TRUE(meter.bytes().TakeOut(4)) << "exactly the limit";
  EXPECT_FALSE(meter.Refusal(Nanos(0)));
  EXPECT_FALSE(meter.bytes().TakeOut(1));
  EXPECT_TRUE(meter.Refusal(Nanos(0)));
  rule.bytes_in = 5;
  RuleMeter both{rule};
  EXPECT_FALSE(both.bytes().TakeIn(6));
  EXPECT_FALSE(both.bytes().TakeOut(1)) << "nothing passes once one limit was reached";
}

TEST(RuleMeters, EachRuleHasItsOwn) {
  EgressRule limited = Rule();
  limited.bytes_out = 1;
  const std::vector<EgressRule> rules = {Rule(), limited};
  RuleMeters meters{rules};
  EXPECT_FALSE(meters.Of(rules[1]).bytes().TakeOut(2));
  EXPECT_TRUE(meters.Of(rules[1]).Refusal(Nanos(0)));
  EXPECT_FALSE(meters.Of(rules[0]).Refusal(Nanos(0)));
}

}  // namespace
}  // namespace coffer::egress
