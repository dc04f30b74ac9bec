// SPDX-License-Identifier: Apache-2.0
#include "policy/host_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "policy/address_class.h"

namespace coffer::policy {
namespace {

using namespace std::string_literals;

// The spellings by which other filters were passed: each reaches another host in some resolver than the filter saw.
const std::string kHostile[] = {
    "",
    "."s,
    "evil.test\0.allowed.test"s,
    "127.0.0.1\0.allowed.test"s,
    "allowed.test\r\nHost: evil.test"s,
    "allowed.test\n"s,
    "allowed.test\t"s,
    " allowed.test"s,
    "allowed.test "s,
    "allowed.test\x7f"s,
    "[allowed.test]"s,
    "[127.0.0.1]"s,
    "[::1]"s,
    "allowed.test."s,
    "allowed.test.."s,
    "localhost."s,
    "..allowed.test"s,
    ".allowed.test"s,
    "allowed..test"s,
    "allowed%2etest"s,
    "allowed.test%2eevil"s,
    "allowed.test%00.evil"s,
    "user@allowed.test"s,
    "allowed.test@evil.test"s,
    "user:password@allowed.test"s,
    "allowed.test:443"s,
    "allowed.test/evil"s,
    "allowed.test\\evil"s,
    "allowed.test?x"s,
    "allowed.test#x"s,
    "allowed\xef\xbc\x8etest"s,   // fullwidth dot
    "allowed\xe3\x80\x82test"s,   // ideographic dot
    "allowed\xef\xbd\xa1test"s,   // its halfwidth form
    "\xef\xbd\x81llowed.test"s,   // a fullwidth letter
    "allowed\xe2\x80\x8b.test"s,  // a zero-width space
    "allowed\xc2\xad.test"s,      // a soft hyphen
    "allowed.t\xc0\xaest"s,       // an overlong dot
    "allowed.\xff"s,
    "xn--.test"s,
    "xn--a.test"s,         // decodes to nothing
    "xn--allowed-.test"s,  // all ASCII behind it
    "-allowed.test"s,
    "allowed-.test"s,
    "all_owed.test"s,
    "*.allowed.test"s,
    "*"s,
    "127.1"s,
    "127.0.1"s,
    "0x7f000001"s,
    "0x7f.0.0.1"s,
    "2130706433"s,
    "017700000001"s,
    "0177.0.0.1"s,
    "0251.0376.0251.0376"s,
    "169.254.43518"s,
    "2852039166"s,
    "0xA9FEA9FE"s,
    "127.0.0.01"s,
    "256.1.1.1"s,
    "1.2.3.4.5"s,
    "1.2.3.4."s,
    "allowed.1"s,
    "allowed.0x1"s,
    "fe80::1%eth0"s,
    "fe80::1%25eth0"s,
    "::ffff:a9fe:a9fe"s,
    "0:0:0:0:0:0:0:1"s,
    "::0001"s,
    "2001:db8:0:0::1"s,
    "::1:"s,
    std::string(254, 'a'),
    std::string(64, 'a') + ".test",
    std::string(100000, '.'),
};

TEST(HostName, OneSpellingOfEachName) {
  for (const std::string& text : kHostile) {
    const auto host = HostName::Parse(text);
    ASSERT_FALSE(host.ok()) << testing::PrintToString(text) << " became " << host->text();
    EXPECT_EQ(host.error().code, "policy.host");
    EXPECT_THAT(host.error().message, testing::Not(testing::HasSubstr("\n")));
    EXPECT_LT(host.error().message.size(), 400U);
  }
}

TEST(HostName, GoodNames) {
  const std::pair<std::string, std::string> kGood[] = {
      {"api.example.com", "api.example.com"},
      {"API.Example.COM", "api.example.com"},
      {"a-1.b", "a-1.b"},
      {"intranet", "intranet"},
      {"m\xc3\xbcnchen.example", "xn--mnchen-3ya.example"},
      {"xn--mnchen-3ya.example", "xn--mnchen-3ya.example"},
      {"XN--mnchen-3ya.example", "xn--mnchen-3ya.example"},
      {"fa\xc3\x9f.example", "xn--fa-hia.example"},  // not "fass": nothing is mapped
      {"0x7f.example", "0x7f.example"},
      {"192.0.2.7", "192.0.2.7"},
      {"2001:DB8::1", "2001:db8::1"},
      {"::ffff:169.254.169.254", "::ffff:169.254.169.254"},
      {std::string(63, 'a') + ".test", std::string(63, 'a') + ".test"},
  };
  for (const auto& [text, wanted] : kGood) {
    const auto host = HostName::Parse(text);
    ASSERT_TRUE(host.ok()) << text << ": " << host.error().message;
    EXPECT_EQ(host->text(), wanted);
    // What was parsed parses to itself.
    EXPECT_EQ(HostName::Parse(host->text()).value().text(), wanted);
  }
  EXPECT_TRUE(HostName::Parse("192.0.2.7")->address().has_value());
  EXPECT_FALSE(HostName::Parse("a.example")->address().has_value());
}

TEST(HostName, PortsAndBrackets) {
  EXPECT_EQ(ParseHostAndPort("a.example:443")->text(), "a.example:443");
  EXPECT_EQ(ParseHostAndPort("a.example")->port, 0);
  EXPECT_EQ(ParseHostAndPort("[2001:db8::1]:443")->text(), "[2001:db8::1]:443");
  EXPECT_EQ(ParseHostAndPort("192.0.2.7:1")->host.text(), "192.0.2.7");
  for (const std::string& text : {"a.example:"s,
                                  "a.example:0"s,
                                  "a.example:00443"s,
                                  "a.example:65536"s,
                                  "a.example:+443"s,
                                  "a.example:-1"s,
                                  "a.example: 443"s,
                                  "a.example:443 "s,
                                  "a.example:443x"s,
                                  ":443"s,
                                  ""s,
                                  "[a.example]:443"s,
                                  "[192.0.2.7]:443"s,
                                  "2001:db8::1"s,
                                  "2001:db8::1:443"s,
                                  "[2001:db8::1"s,
                                  "[2001:db8::1]443"s,
                                  "[2001:db8::1]x:443"s,
                                  "[fe80::1%25lo]:443"s,
                                  "[]:443"s,
                                  "a@b.example:443"s,
                                  "a.example:443:443"s,
                                  "a.example\0:443"s}) {
    EXPECT_FALSE(ParseHostAndPort(text).ok()) << text;
  }
}

TEST(HostPattern, CoversByLabels) {
  const auto covers = [](const char* pattern, const char* host) {
    return HostPattern::Parse(pattern).value().Covers(HostName::Parse(host).value());
  };
  EXPECT_TRUE(covers("allowed.test", "ALLOWED.test"));
  EXPECT_FALSE(covers("allowed.test", "a.allowed.test"));
  EXPECT_TRUE(covers("*.allowed.test", "b.a.allowed.test"));
  EXPECT_FALSE(covers("*.allowed.test", "allowed.test"));
  EXPECT_TRUE(covers("**.allowed.test", "allowed.test"));
  for (const char* pattern : {"allowed.test", "*.allowed.test", "**.allowed.test"}) {
    for (const char* host : {"evilallowed.test", "allowed.test.evil.test", "allowed.tes",
                             "llowed.test", "test", "allowed.test.com", "192.0.2.7"}) {
      EXPECT_FALSE(covers(pattern, host)) << pattern << " " << host;
    }
  }
  EXPECT_TRUE(HostPattern::Any().Covers(HostName::Parse("a.test").value()));
  EXPECT_FALSE(HostPattern::Any().Covers(HostName::Parse("10.0.0.1").value()))
      << "every name is not every address";
  EXPECT_FALSE(HostPattern().Covers(HostName())) << "nothing covers nothing";
  for (const char* bad : {"*", "**", "*.*", "a.*.test", "*a.test", "***.a.test", "*.192.0.2.7",
                          "*..test", "*.", "**.", "*.xn--a.test"}) {
    EXPECT_FALSE(HostPattern::Parse(bad).ok()) << bad;
  }
}

TEST(IpAddress, RangesAreReadOneWay) {
  EXPECT_EQ(ParseAddressRange("10.0.0.0/8")->text(), "10.0.0.0/8");
  EXPECT_EQ(ParseAddressRange("10.1.2.3")->text(), "10.1.2.3/32");
  EXPECT_EQ(ParseAddressRange("fd00::/8")->text(), "fd00::/8");
  EXPECT_EQ(ParseAddressRange("0.0.0.0/0")->text(), "0.0.0.0/0");
  for (const char* bad :
       {"", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/08", "10.0.0.0/ 8", "10.0.0.1/8", "10/8",
        "fd00::/129", "fd00::1/64", "10.0.0.0/8/8", "a.example/8", "10.0.0.0/-1"}) {
    EXPECT_FALSE(ParseAddressRange(bad).ok()) << bad;
  }
  const AddressRange ten = ParseAddressRange("10.0.0.0/9").value();
  EXPECT_TRUE(ten.Contains(IpAddress::Parse("10.127.255.255").value()));
  EXPECT_FALSE(ten.Contains(IpAddress::Parse("10.128.0.0").value()));
  EXPECT_FALSE(ParseAddressRange("::/0")->Contains(IpAddress::Parse("10.0.0.1").value()));
}

TEST(AddressClass, InnermostBlockCounts) {
  const auto kind = [](const char* text) {
    const auto block = BlockOf(IpAddress::Parse(text).value());
    return block ? block->kind : AddressClass::kPublic;
  };
  EXPECT_EQ(kind("8.8.8.8"), AddressClass::kPublic);
  EXPECT_EQ(kind("2606:2800::1"), AddressClass::kPublic);
  EXPECT_EQ(kind("169.254.1.1"), AddressClass::kLinkLocal);
  EXPECT_EQ(kind("169.254.169.254"), AddressClass::kMetadata);
  EXPECT_EQ(kind("::ffff:169.254.169.254"), AddressClass::kMetadata);
  EXPECT_EQ(kind("fd00:ec2::254"), AddressClass::kMetadata);
  EXPECT_EQ(kind("2001::1"), AddressClass::kTranslated);
  EXPECT_EQ(kind("4000::1"), AddressClass::kReserved) << "not given out";
  EXPECT_TRUE(IsOfOneKind(ParseAddressRange("127.0.0.0/8").value()));
  EXPECT_TRUE(IsOfOneKind(ParseAddressRange("10.2.0.0/16").value()));
  EXPECT_TRUE(IsOfOneKind(ParseAddressRange("8.8.8.0/24").value()));
  EXPECT_FALSE(IsOfOneKind(ParseAddressRange("0.0.0.0/0").value()));
  EXPECT_FALSE(IsOfOneKind(ParseAddressRange("8.0.0.0/6").value())) << "10.0.0.0/8 is in it";
  EXPECT_FALSE(IsOfOneKind(ParseAddressRange("::/0").value()));
}

}  // namespace
}  // namespace coffer::policy
