// SPDX-License-Identifier: Apache-2.0
#include "egress/socks.h"

#include <gtest/gtest.h>

#include <string>

namespace coffer::egress {
namespace {

using namespace std::string_literals;
using State = SocksStep::State;

std::string ByName(const std::string& name) {
  return "\x05\x01\x00\x03"s + static_cast<char>(name.size()) + name + "\x01\xbb"s;
}

TEST(Socks, GreetingOffersNoPassword) {
  const std::string bytes = "\x05\x02\x00\x02more"s;
  EXPECT_EQ(ReadSocksGreeting(bytes.substr(0, 1)).state, State::kMore);
  EXPECT_EQ(ReadSocksGreeting(bytes.substr(0, 3)).state, State::kMore);
  const SocksStep step = ReadSocksGreeting(bytes);
  EXPECT_EQ(step.state, State::kDone);
  EXPECT_EQ(step.consumed, 4U);
  EXPECT_EQ(step.answer, "\x05\x00"s);
  EXPECT_EQ(ReadSocksGreeting("\x05\x01\x02"s).answer, "\x05\xff"s);
  EXPECT_EQ(ReadSocksGreeting("\x05\x00"s).state, State::kBroken);
  EXPECT_EQ(ReadSocksGreeting("\x04\x01"s).state, State::kBroken);
}

TEST(Socks, NamesAndAddresses) {
  const std::string bytes = ByName("API.test");
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(ReadSocksRequest(bytes.substr(0, size)).state, State::kMore) << size;
  }
  const SocksStep step = ReadSocksRequest(bytes + "tls");
  ASSERT_EQ(step.state, State::kDone);
  EXPECT_EQ(step.to.text(), "api.test:443");
  EXPECT_EQ(step.consumed, bytes.size());
  EXPECT_EQ(ReadSocksRequest("\x05\x01\x00\x01\xc0\x00\x02\x07\x00\x50"s).to.text(),
            "192.0.2.7:80");
  EXPECT_EQ(ReadSocksRequest("\x05\x01\x00\x04\x20\x01\x0d\xb8"s + std::string(11, '\0') + "\x01"s +
                             "\x00\x50"s)
                .to.text(),
            "[2001:db8::1]:80");
  // A name that is an address is an address.
  EXPECT_TRUE(ReadSocksRequest(ByName("127.0.0.1")).to.host.address().has_value());
}

TEST(Socks, WhatIsRefused) {
  for (const std::string& name :
       {"127.0.0.1\0.allowed.test"s, "evil.test\0.allowed.test"s, "allowed.test\0"s, "\0"s, ""s,
        "allowed.test."s, "127.1"s, "0x7f000001"s, "2130706433"s, "[::1]"s, "a b"s,
        "allowed.test\r\n"s, "fe80::1%eth0"s, std::string(255, 'a')}) {
    const SocksStep step = ReadSocksRequest(ByName(name));
    EXPECT_EQ(step.state, State::kBroken) << testing::PrintToString(name);
    EXPECT_EQ(step.answer, SocksAnswer(SocksReply::kNotAllowed));
  }
  EXPECT_EQ(ReadSocksRequest("\x05\x02\x00\x03\x01"s).answer,
            SocksAnswer(SocksReply::kCommandNotSupported));
  EXPECT_EQ(ReadSocksRequest("\x05\x03\x00\x01\x01"s).answer,
            SocksAnswer(SocksReply::kCommandNotSupported))
      << "no UDP";
  EXPECT_EQ(ReadSocksRequest("\x05\x01\x00\x02\x01"s).answer,
            SocksAnswer(SocksReply::kAddressNotSupported));
  EXPECT_EQ(ReadSocksRequest("\x05\x01\x01\x01\x01"s).state, State::kBroken);
  EXPECT_EQ(ReadSocksRequest("\x05\x01\x00\x01\x08\x08\x08\x08\x00\x00"s).state, State::kBroken);
  EXPECT_EQ(ReadSocksRequest("G"s).state, State::kBroken);
}

}  // namespace
}  // namespace coffer::egress
