// SPDX-License-Identifier: Apache-2.0
#include "egress/resolver.h"

#include <gtest/gtest.h>

#include <vector>

namespace coffer::egress {
namespace {

using policy::EgressRule;

constexpr uint16_t kTypeA = 1, kPtr = 12, kTxt = 16, kAaaa = 28, kHttps = 65;

std::string Query(const std::string& name, uint16_t type) {
  std::string out("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00", 12);
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('.', at), name.size());
    out += static_cast<char>(end - at);
    out += name.substr(at, end - at);
    at = end + 1;
  }
  out += '\0';
  out += static_cast<char>(type >> 8);
  out += static_cast<char>(type & 0xff);
  return out + std::string("\x00\x01", 2);
}

int CodeOf(const std::string& answer) { return answer[3] & 0x0f; }
int AnswersOf(const std::string& answer) { return answer[7]; }
std::string LastFour(const std::string& answer) { return answer.substr(answer.size() - 4); }

class ResolverTest : public ::testing::Test {
 protected:
  std::string Ask(const std::string& name, uint16_t type = kTypeA) {
    return resolver_.Answer(Query(name, type)).value_or("");
  }

  std::vector<EgressRule> rules_ = {policy::ParseAllow("api.test").value(),
                                    policy::ParseAllow("tcp://git.test:22").value(),
                                    policy::ParseAllow("*.zone.test:8443").value()};
  std::vector<Traffic> log_;
  Resolver resolver_{rules_, [this](const Traffic& one) { log_.push_back(one); }};
};

TEST_F(ResolverTest, AllowedNamesHaveASyntheticAddress) {
  for (const char* const name : {"api.test", "API.Test", "git.test", "a.zone.test"}) {
    const std::string answer = Ask(name);
    EXPECT_EQ(CodeOf(answer), 0) << name;
    ASSERT_EQ(AnswersOf(answer), 1) << name;
    EXPECT_EQ(LastFour(answer).substr(0, 3), "\xc6\x12\x01") << name;
  }
  EXPECT_EQ(LastFour(Ask("api.test")), LastFour(Ask("API.TEST"))) << "one name, one address";
  EXPECT_NE(LastFour(Ask("api.test")), LastFour(Ask("git.test")));
  EXPECT_TRUE(log_.empty());
}

TEST_F(ResolverTest, OtherTypesOfAllowedNamesHaveNoData) {
  for (const uint16_t type : {kAaaa, kHttps, kTxt, kPtr, uint16_t{255}}) {
    const std::string answer = Ask("api.test", type);
    EXPECT_EQ(CodeOf(answer), 0) << type;
    EXPECT_EQ(AnswersOf(answer), 0) << type;
  }
}

TEST_F(ResolverTest, Ipv6AddressesAreAnsweredWhereConnectionsToThemArrive) {
  EXPECT_EQ(AnswersOf(Ask("api.test", kAaaa)), 0) << "the control";
  resolver_.AnswerIpv6();
  const std::string answer = Ask("api.test", kAaaa);
  EXPECT_EQ(CodeOf(answer), 0);
  ASSERT_EQ(AnswersOf(answer), 1);
  EXPECT_EQ(answer.substr(answer.size() - 18),
            std::string("\x00\x10\x20\x01\x00\x02\0\0\0\0\0\0\0\0\0\0\x01\x00", 18));
  EXPECT_EQ(AnswersOf(Ask("api.test")), 1);
  for (const uint16_t type : {kHttps, kTxt, uint16_t{255}}) {
    EXPECT_EQ(AnswersOf(Ask("api.test", type)), 0) << type;
  }
  EXPECT_EQ(CodeOf(Ask("evil.test", kAaaa)), 3);
  EXPECT_EQ(log_.size(), 1u);
}

TEST_F(ResolverTest, OtherNamesDoNotExistAndAreDenied) {
  for (const uint16_t type : {kTypeA, kAaaa, kTxt, kHttps}) {
    for (const char* const name :
         {"evil.test", "sub.api.test", "zone.test", "api.test.evil.test"}) {
      const std::string answer = Ask(name, type);
      EXPECT_EQ(CodeOf(answer), 3) << name;
      EXPECT_EQ(AnswersOf(answer), 0) << name;
    }
  }
  ASSERT_EQ(log_.size(), 4u) << "each once";
  EXPECT_EQ(log_[0].host, "evil.test");
  EXPECT_EQ(log_[0].port, 0);
  EXPECT_FALSE(log_[0].allowed);
  EXPECT_EQ(log_[0].fix, "--allow evil.test");
}

TEST_F(ResolverTest, WhatIsNotAHostNameDoesNotExist) {
  for (const char* const name : {"_http._tcp.api.test", "127.0.0.1"}) {
    EXPECT_EQ(CodeOf(Ask(name)), 3) << name;
  }
  EXPECT_EQ(CodeOf(Ask("1.1.18.198.in-addr.arpa", kPtr)), 3);
  EXPECT_TRUE(log_.empty()) << "these reach for no host";
  EXPECT_FALSE(resolver_.Answer("not a query")) << "no answer to what is no query";
}

TEST_F(ResolverTest, NeitherNamesNorDenialsGrowWithoutEnd) {
  for (int i = 0; i < 3000; ++i) {
    Ask("n" + std::to_string(i) + ".evil.test");
  }
  EXPECT_EQ(log_.size(), Resolver::kMostDenials + 1);
  EXPECT_EQ(log_.back().host, "") << "one line for all others";
  for (size_t i = 0; i < NameTable::kMostNames; ++i) {
    ASSERT_EQ(AnswersOf(Ask("n" + std::to_string(i) + ".zone.test")), 1) << i;
  }
  EXPECT_EQ(CodeOf(Ask("one-more.zone.test")), 5);
  EXPECT_EQ(CodeOf(Ask("api.test")), 5) << "a name is only kept once it was asked for";
  EXPECT_EQ(AnswersOf(Ask("n0.zone.test")), 1) << "the control";
}

// Each of these is an incident, which a flood of other names must not hide.
TEST_F(ResolverTest, NamesOfMetadataServicesAreDeniedAfterAFlood) {
  for (int i = 0; i < 3000; ++i) {
    Ask("n" + std::to_string(i) + ".evil.test");
  }
  const size_t noise = log_.size();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(CodeOf(Ask("metadata.google.internal")), 3);
    EXPECT_EQ(CodeOf(Ask("late.evil.test")), 3) << "the control";
  }
  ASSERT_EQ(log_.size(), noise + 1) << "once, and nothing of the other name";
  EXPECT_EQ(log_.back().host, "metadata.google.internal");
}

}  // namespace
}  // namespace coffer::egress
