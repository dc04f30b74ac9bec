// SPDX-License-Identifier: Apache-2.0
#include "egress/access_requests.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <thread>

#include "net/loop.h"

namespace coffer::egress {
namespace {

using policy::EgressRule;
using policy::HostName;

EgressRule AskFor(const std::string& pattern) {
  EgressRule rule;
  rule.host = policy::HostPattern::Parse(pattern).value();
  rule.ask = true;
  return rule;
}

class AccessRequestsTest : public ::testing::Test {
 protected:
  void Make(uint32_t hold_seconds, Nanos minute = std::chrono::minutes(1)) {
    requests_ = std::make_unique<AccessRequests>(
        net::ContextOf(*loop_).get_executor(), hold_seconds,
        [this](const AccessNotice& notice) {
          notices_.push_back(notice);
          return reachable_;
        },
        minute);
  }
  // A connection to that host, which waits if it must. Its admission is at `place` of admissions_.
  size_t Connect(const std::string& host, uint16_t port = 443) {
    const policy::EgressConnect connect{HostName::Parse(host).value(), port};
    const policy::EgressVerdict verdict = policy::Judge(rules_, connect);
    const size_t place = admissions_.size();
    admissions_.emplace_back();
    net::asio::co_spawn(net::ContextOf(*loop_), Wait(verdict, {connect.host, port}, place),
                        [](const std::exception_ptr&) {});
    Turn();
    return place;
  }
  net::Task<void> Wait(policy::EgressVerdict verdict, policy::HostAndPort to, size_t place) {
    AccessVerdict admission = co_await requests_->Admit(verdict, to, [this] { return gone_; });
    admissions_[place] = std::move(admission);
  }
  // Everything that can be done now is done.
  void Turn(std::chrono::milliseconds time = std::chrono::milliseconds(20)) {
    const std::shared_ptr<void> stop = loop_->After(time, [this] { loop_->Stop(); });
    net::ContextOf(*loop_).restart();
    loop_->Run();
  }
  bool Opened(size_t place) const {
    return admissions_[place] && admissions_[place]->rule == rules_.data();
  }

  std::unique_ptr<net::Loop> loop_ = net::MakeLoop();
  std::vector<EgressRule> rules_ = {AskFor("**.test")};
  std::unique_ptr<AccessRequests> requests_;
  std::vector<AccessNotice> notices_;
  std::vector<std::optional<AccessVerdict>> admissions_;
  bool reachable_ = true;
  bool gone_ = false;
};

TEST_F(AccessRequestsTest, ADecisionOpensTheHostAndPortThatWereAskedFor) {
  Make(60);
  const size_t first = Connect("a.test");
  const size_t same = Connect("a.test");
  const size_t other = Connect("b.test");
  ASSERT_EQ(notices_.size(), 2U) << "one request for one place";
  EXPECT_EQ(notices_[0].host, "a.test");
  EXPECT_EQ(notices_[0].opens, "a.test:443") << "not what the whole rule covers";
  EXPECT_FALSE(admissions_[first]);
  requests_->Decide({7, AccessChoice::kForCall, 0});
  requests_->Decide({notices_[0].id, AccessChoice::kForCall, 0});
  Turn();
  EXPECT_TRUE(Opened(first));
  EXPECT_TRUE(Opened(same));
  EXPECT_FALSE(admissions_[other]) << "OPEN: it was not asked for";
  EXPECT_TRUE(Opened(Connect("a.test"))) << "asked for once";
  requests_->Decide({notices_[1].id, AccessChoice::kDeny, 0});
  requests_->Decide({notices_[1].id, AccessChoice::kForCall, 0});
  Turn();
  EXPECT_EQ(admissions_[other]->reason, "access_denied") << "OPEN: the first answer holds";
  EXPECT_EQ(admissions_[Connect("b.test")]->reason, "access_denied");
  EXPECT_EQ(notices_.size(), 2U) << "a denial is remembered";
}

TEST_F(AccessRequestsTest, WhatNoRuleWithAskCoversCannotBeDecided) {
  Make(60);
  rules_[0] = policy::ParseAllow("a.test").value();
  EXPECT_TRUE(Opened(Connect("a.test")));
  EXPECT_EQ(admissions_[Connect("b.test")]->reason, "host_not_allowed");
  EXPECT_TRUE(notices_.empty());
  requests_->Decide({1, AccessChoice::kForCall, 0});
  EXPECT_EQ(admissions_[Connect("b.test")]->reason, "host_not_allowed");
}

TEST_F(AccessRequestsTest, NumbersAndReservedNamesAreNotAskedFor) {
  Make(60);
  rules_[0].host = policy::HostPattern::Any();
  for (const char* const host : {"127.0.0.1", "::1", "localhost", "metadata.google.internal"}) {
    const size_t place = Connect(host);
    ASSERT_TRUE(admissions_[place]) << host;
    EXPECT_EQ(admissions_[place]->rule, nullptr) << host;
  }
  EXPECT_TRUE(notices_.empty());
  Connect("a.test");
  EXPECT_EQ(notices_.size(), 1U) << "the control";
}

TEST_F(AccessRequestsTest, AGrantForMinutesEndsByItself) {
  Make(60, std::chrono::milliseconds(100));
  const size_t first = Connect("a.test");
  requests_->Decide({1, AccessChoice::kForMinutes, 2});
  Turn();
  ASSERT_TRUE(Opened(first));
  EXPECT_GT(admissions_[first]->until, Nanos(0));
  EXPECT_TRUE(Opened(Connect("a.test")));
  Turn(std::chrono::milliseconds(300));
  const size_t later = Connect("a.test");
  EXPECT_FALSE(admissions_[later]) << "OPEN: its time is over";
  EXPECT_EQ(notices_.size(), 2U) << "it is asked for again";
  requests_->Decide({2, AccessChoice::kForMinutes, kMostAccessMinutes + 1});
  Turn();
  EXPECT_EQ(admissions_[later]->reason, "access_denied") << "no decision that makes no sense";
}

TEST_F(AccessRequestsTest, NoAnswerIsADenial) {
  Make(1);
  const size_t place = Connect("a.test");
  EXPECT_FALSE(admissions_[place]);
  Turn(std::chrono::milliseconds(1300));
  ASSERT_TRUE(admissions_[place]);
  EXPECT_EQ(admissions_[place]->reason, "access_unanswered");
  ASSERT_EQ(notices_.size(), 2U);
  EXPECT_EQ(notices_[1].kind, AccessNotice::Kind::kUnanswered);
  requests_->Decide({1, AccessChoice::kForCall, 0});
  EXPECT_EQ(admissions_[Connect("a.test")]->reason, "access_unanswered") << "OPEN: too late";
  EXPECT_EQ(notices_.size(), 2U);
}

TEST_F(AccessRequestsTest, AProgramThatLeavesTakesItsRequestBack) {
  Make(60);
  Connect("a.test");
  gone_ = true;
  Turn(std::chrono::milliseconds(1300));
  ASSERT_EQ(notices_.size(), 2U);
  EXPECT_EQ(notices_[1].kind, AccessNotice::Kind::kGone);
  requests_->Decide({1, AccessChoice::kForCall, 0});
  gone_ = false;
  EXPECT_FALSE(admissions_[Connect("a.test")]) << "OPEN: it was taken back";
}

TEST_F(AccessRequestsTest, ACallAsksABoundedNumberOfTimes) {
  Make(60);
  for (size_t i = 0; i < AccessRequests::kMostWaiting; ++i) {
    Connect("h" + std::to_string(i) + ".test");
  }
  EXPECT_EQ(notices_.size(), AccessRequests::kMostWaiting);
  EXPECT_EQ(admissions_[Connect("more.test")]->reason, "access_unanswered");
  for (uint32_t id = 1; id <= AccessRequests::kMostRequests; ++id) {
    requests_->Decide({id, AccessChoice::kDeny, 0});
    Connect("n" + std::to_string(id) + ".test");
  }
  EXPECT_EQ(notices_.size(), AccessRequests::kMostRequests);
  const size_t last = Connect("last.test");
  ASSERT_TRUE(admissions_[last]);
  EXPECT_EQ(admissions_[last]->reason, "access_unanswered");
  EXPECT_EQ(notices_.size(), AccessRequests::kMostRequests) << "OPEN: it may ask for ever";
}

TEST_F(AccessRequestsTest, WithoutAPersonItIsRefusedAtOnce) {
  Make(0);
  EXPECT_EQ(admissions_[Connect("a.test")]->reason, "access_unanswered");
  EXPECT_TRUE(notices_.empty());
  Make(60);
  reachable_ = false;
  EXPECT_EQ(admissions_[Connect("a.test")]->reason, "access_unanswered") << "no one hears of it";
}

TEST_F(AccessRequestsTest, TheEndOfTheCallEndsTheWait) {
  Make(60);
  const size_t place = Connect("a.test");
  EXPECT_FALSE(admissions_[place]);
  requests_->End();
  Turn();
  ASSERT_TRUE(admissions_[place]);
  EXPECT_EQ(admissions_[place]->rule, nullptr);
}

}  // namespace
}  // namespace coffer::egress
