// SPDX-License-Identifier: Apache-2.0
#include "egress/lookup_budget.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace coffer::egress {
namespace {

using policy::EgressRule;
using policy::HostName;
using policy::HostPattern;
using policy::IpAddress;
using std::chrono::minutes;
using std::chrono::seconds;

HostName Named(const std::string& text) { return HostName::Parse(text).value(); }
EgressRule RuleOf(const std::string& text) { return policy::ParseAllow(text).value(); }
std::vector<IpAddress> One() { return {IpAddress::V4({192, 0, 2, 7})}; }

// `size` bytes in front of ".zone.test", another name for each number.
HostName Below(size_t size, size_t number) {
  std::string label = fmt::format("{:08}", number);
  for (; label.size() < size; label += 'x') {
    if (label.size() % 64 == 63) {
      label += '.';
    }
  }
  return Named(label.substr(0, size) + ".zone.test");
}

TEST(LookupBudget, OnlyNamesThatAWildcardCoversAreChosen) {
  EgressRule any;
  any.host = HostPattern::Any();
  any.deny = true;  // names nothing, and neither writes a name out
  const std::vector<EgressRule> rules = {RuleOf("good.test"), RuleOf("**.zone.test"),
                                         RuleOf("*.sub.zone.test"), RuleOf("a.zone.test:444"), any};
  const LookupBudget budget(rules);
  for (const char* const host : {"good.test", "zone.test", "a.zone.test", "192.0.2.1"}) {
    EXPECT_FALSE(budget.IsChosen(Named(host))) << host;
  }
  for (const char* const host :
       {"b.zone.test", "a.a.zone.test", "sub.zone.test", "x.sub.zone.test"}) {
    EXPECT_TRUE(budget.IsChosen(Named(host))) << host;
  }
}

TEST(LookupBudget, ALookupBeyondTheNumberIsRefused) {
  const std::vector<EgressRule> rules = {RuleOf("*.zone.test")};
  LookupBudget budget(rules);
  for (size_t i = 0; i < LookupBudget::kMostLookups; ++i) {
    ASSERT_EQ(budget.Charge(Below(8, i)), std::nullopt) << i;
  }
  const HostName further = Below(8, LookupBudget::kMostLookups);
  EXPECT_THAT(budget.Charge(further).value_or(""), ::testing::HasSubstr("1024 lookups"));
  EXPECT_FALSE(budget.IsKnown(further)) << "a refused name takes no room";
  EXPECT_THAT(budget.Charge(Below(8, 0)).value_or(""), ::testing::HasSubstr("1024 lookups"))
      << "asking again for a known name leaves this host too";
}

TEST(LookupBudget, BytesBeyondTheSumAreRefusedAndShorterNamesStillFit) {
  const std::vector<EgressRule> rules = {RuleOf("*.zone.test")};
  LookupBudget budget(rules);
  constexpr size_t kLong = 200;  // with the dot that ends them, 201 bytes of each name
  size_t passed = 0;
  while (!budget.Charge(Below(kLong, passed))) {
    ++passed;
    ASSERT_LE(passed, LookupBudget::kMostLookups);
  }
  EXPECT_EQ(passed, LookupBudget::kMostBytes / (kLong + 1));
  EXPECT_THAT(budget.Charge(Below(kLong, passed)).value_or(""),
              ::testing::HasSubstr("16384 bytes"));
  EXPECT_EQ(budget.Charge(Below(8, passed)), std::nullopt) << "the bytes that are left";
  EXPECT_EQ(budget.Charge(Below(kLong, 0)), std::nullopt) << "its bytes were counted before";
}

TEST(LookupBudget, OfTwoWildcardsTheLongerDomainCounts) {
  const std::vector<EgressRule> rules = {RuleOf("*.zone.test"), RuleOf("*.long-name.zone.test")};
  LookupBudget budget(rules);
  size_t passed = 0;
  // "00000000." is 9 bytes.
  while (!budget.Charge(Named(fmt::format("{:08}.long-name.zone.test", passed)))) {
    ++passed;
  }
  EXPECT_EQ(passed, LookupBudget::kMostLookups) << "9 bytes of each, not 19, fit 1,820 times";
}

TEST(LookupBudget, AnAnswerIsKeptForItsTime) {
  const std::vector<EgressRule> rules = {RuleOf("*.zone.test")};
  LookupBudget budget(rules);
  const HostName host = Named("a.zone.test");
  const Nanos now = minutes(5);
  EXPECT_EQ(budget.Kept(host, now), nullptr);
  EXPECT_FALSE(budget.IsPending(host));
  ASSERT_EQ(budget.Charge(host), std::nullopt);
  EXPECT_TRUE(budget.IsPending(host));
  budget.Keep(host, One(), now);
  EXPECT_FALSE(budget.IsPending(host));
  ASSERT_NE(budget.Kept(host, now + LookupBudget::kKept - seconds(1)), nullptr);
  EXPECT_EQ(*budget.Kept(host, now), One());
  EXPECT_EQ(budget.Kept(host, now + LookupBudget::kKept), nullptr);
  budget.Forget(host);
  EXPECT_EQ(budget.Kept(host, now), nullptr);
  EXPECT_TRUE(budget.IsKnown(host));
}

TEST(LookupBudget, ThatThereIsNoAddressIsKeptForLess) {
  const std::vector<EgressRule> rules = {RuleOf("*.zone.test")};
  LookupBudget budget(rules);
  const HostName host = Named("missing.zone.test");
  const Nanos now = minutes(5);
  ASSERT_EQ(budget.Charge(host), std::nullopt);
  budget.Keep(host, {}, now);
  ASSERT_NE(budget.Kept(host, now), nullptr);
  EXPECT_TRUE(budget.Kept(host, now)->empty());
  EXPECT_EQ(budget.Kept(host, now + LookupBudget::kNoneKept), nullptr);
}

// A program that waits for its server tries again and again.
TEST(LookupBudget, ADoubtedAnswerIsKeptForALittle) {
  const std::vector<EgressRule> rules = {RuleOf("*.zone.test")};
  LookupBudget budget(rules);
  const HostName host = Named("down.zone.test");
  size_t lookups = 0;
  for (Nanos now = minutes(5); now < minutes(65); now += seconds(1)) {
    if (budget.Kept(host, now) == nullptr) {
      ASSERT_EQ(budget.Charge(host), std::nullopt) << "spent after " << lookups;
      budget.Keep(host, One(), now);
      ++lookups;
    }
    budget.DoubtAnswer(host, now);
  }
  EXPECT_EQ(lookups, static_cast<size_t>(Nanos(minutes(60)) / LookupBudget::kDoubtKept))
      << "and it is asked for again, because it may have moved";
  // Doubt makes no answer live longer.
  budget.Keep(host, One(), minutes(70));
  const Nanos late = minutes(70) + LookupBudget::kKept - seconds(1);
  budget.DoubtAnswer(host, late);
  EXPECT_EQ(budget.Kept(host, late + seconds(2)), nullptr);
}

TEST(LookupBudget, NothingIsKeptOfNamesThatWereNotCharged) {
  const std::vector<EgressRule> rules = {RuleOf("*.zone.test")};
  LookupBudget budget(rules);
  budget.Keep(Named("a.zone.test"), One(), minutes(5));
  EXPECT_EQ(budget.Kept(Named("a.zone.test"), minutes(5)), nullptr);
  EXPECT_FALSE(budget.IsKnown(Named("a.zone.test")));
}

}  // namespace
}  // namespace coffer::egress
