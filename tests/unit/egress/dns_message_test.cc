// SPDX-License-Identifier: Apache-2.0
#include "egress/dns_message.h"

#include <gtest/gtest.h>

#include <string>

namespace coffer::egress {
namespace {

using namespace std::string_literals;

const std::string kHead = "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"s;
const std::string kName =
    "\x03"
    "api\x04test\x00"s;
const std::string kA = "\x00\x01\x00\x01"s;
const std::string kOpt = "\x00\x00\x29\x10\x00\x00\x00\x00\x00\x00\x00"s;

std::string WithOpt(std::string query) {
  query[11] = 1;
  return query + kOpt;
}

TEST(DnsMessage, AQuestionIsRead) {
  for (const std::string& query : {kHead + kName + kA, WithOpt(kHead + kName + kA)}) {
    const auto question = ParseDnsQuery(query);
    ASSERT_TRUE(question.ok()) << question.error().message;
    EXPECT_EQ(question->id, 0x1234);
    EXPECT_EQ(question->type, DnsQuestion::Type::kA);
    EXPECT_EQ(question->name->text(), "api.test");
    EXPECT_EQ(question->wire, kName + kA);
  }
  EXPECT_EQ(ParseDnsQuery(kHead + kName + "\x00\x1c\x00\x01"s)->type, DnsQuestion::Type::kAaaa);
  // Text, service and HTTPS records, other classes: no data.
  for (const std::string& type :
       {"\x00\x10\x00\x01"s, "\x00\x41\x00\x01"s, "\x00\x01\x00\x03"s, "\x00\xff\x00\x01"s}) {
    EXPECT_EQ(ParseDnsQuery(kHead + kName + type)->type, DnsQuestion::Type::kOther);
  }
}

TEST(DnsMessage, NamesAreHostNamesOrNone) {
  for (const std::string& name :
       {"\x00"s,
        "\x08"
        "api.test\x00"s,
        "\x03"
        "a\0b\x04test\x00"s,
        "\x03"
        "_ab\x04test\x00"s,
        "\x03"
        "127\x01"
        "0\x01"
        "0\x01"
        "1\x00"s,
        "\x04"
        "127.\x03"
        "0.1\x00"s,
        "\x01%\x04test\x00"s, "\x01*\x04test\x00"s, "\x02\xc3\xa4\x04test\x00"s}) {
    const auto question = ParseDnsQuery(kHead + name + kA);
    ASSERT_TRUE(question.ok()) << testing::PrintToString(name);
    if (name != "\x02\xc3\xa4\x04test\x00"s) {
      EXPECT_FALSE(question->name) << testing::PrintToString(name);
    }
  }
}

TEST(DnsMessage, WhatIsNotAQuery) {
  std::string response = kHead;
  response[2] = '\x81';
  std::string update = kHead;
  update[2] = '\x28';
  std::string two = kHead;
  two[5] = 2;
  std::string answers = kHead;
  answers[7] = 1;
  std::string more = kHead;
  more[11] = 1;
  for (const std::string& bad :
       {""s, "\x12\x34"s, kHead, kHead + kName, kHead + kName + "\x00\x01\x00"s,
        kHead + kName + kA + "x", response + kName + kA, update + kName + kA,
        two + kName + kA + kName + kA, answers + kName + kA, more + kName + kA,
        more + kName + kA + kOpt + "x", kHead + "\xc0\x0c" + kA, kHead + "\x40" + kName + kA,
        kHead + "\x3f"
                "a",
        kHead + std::string(300, '\x01') + "\x00"s + kA, std::string(2000, '\0')}) {
    EXPECT_FALSE(ParseDnsQuery(bad).ok()) << testing::PrintToString(bad);
  }
}

TEST(DnsMessage, Answers) {
  const auto question = ParseDnsQuery(kHead + kName + kA);
  ASSERT_TRUE(question.ok());
  EXPECT_EQ(MakeDnsAnswer(*question, DnsAnswer::kNoName),
            "\x12\x34\x81\x83\x00\x01\x00\x00\x00\x00\x00\x00"s + kName + kA);
  EXPECT_EQ(MakeDnsAnswer(*question, DnsAnswer::kNoData)[3], '\x80');
  EXPECT_EQ(MakeDnsAnswer(*question, policy::IpAddress::Parse("198.18.0.1").value(), 60),
            "\x12\x34\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00"s + kName + kA +
                "\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\xc6\x12\x00\x01"s);
}

}  // namespace
}  // namespace coffer::egress
