// SPDX-License-Identifier: Apache-2.0
#include "egress/name_table.h"

#include <gtest/gtest.h>

#include <set>

#include "policy/synthetic_block.h"

namespace coffer::egress {
namespace {

using policy::HostName;
using policy::IpAddress;

constexpr bool kV4 = false;
constexpr bool kV6 = true;

HostName Name(const std::string& text) { return HostName::Parse(text).value(); }

TEST(NameTable, AnAddressStandsForOneNameForGood) {
  NameTable table;
  const auto first = table.AddressOf(Name("api.test"), kV4);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->text(), "198.18.1.0");
  EXPECT_EQ(table.AddressOf(Name("other.test"), kV4)->text(), "198.18.1.1");
  EXPECT_EQ(table.AddressOf(Name("api.test"), kV4), first);
  EXPECT_EQ(table.NameOf(*first), Name("api.test"));
}

TEST(NameTable, ANameHasOneAddressOfEachFamily) {
  NameTable table;
  EXPECT_EQ(table.AddressOf(Name("api.test"), kV6)->text(), "2001:2::100");
  EXPECT_EQ(table.AddressOf(Name("other.test"), kV4)->text(), "198.18.1.1");
  EXPECT_EQ(table.AddressOf(Name("other.test"), kV6)->text(), "2001:2::101");
  EXPECT_EQ(table.AddressOf(Name("api.test"), kV4)->text(), "198.18.1.0");
  EXPECT_EQ(table.NameOf(IpAddress::Parse("2001:2::101").value()), Name("other.test"));
}

TEST(NameTable, AddressesWithoutANameAreNoNames) {
  NameTable table;
  ASSERT_TRUE(table.AddressOf(Name("api.test"), kV4));
  for (const char* const text :
       {"198.18.0.0",     "198.18.0.1",      "198.18.0.255",  "198.18.1.1", "198.19.1.0",
        "198.18.255.255", "127.0.0.1",       "18.1.0.0",      "::1",        "::ffff:198.18.1.0",
        "c612:100::",     "2001:2::",        "2001:2::1",     "2001:2::ff", "2001:2::101",
        "2001:2::1:100",  "2001:2:0:1::100", "2001:2:1::100", "2001::100",  "2001:3::100",
        "::100"}) {
    EXPECT_FALSE(table.NameOf(IpAddress::Parse(text).value())) << text;
  }
  EXPECT_TRUE(table.NameOf(IpAddress::Parse("198.18.1.0").value())) << "the control";
  EXPECT_TRUE(table.NameOf(IpAddress::Parse("2001:2::100").value())) << "the control";
}

TEST(NameTable, ItIsBoundedAndNothingIsReplaced) {
  NameTable table;
  const policy::AddressRange block{IpAddress::V4(policy::kSyntheticBlock), policy::kSyntheticBits};
  const policy::AddressRange block6{IpAddress::V6(policy::kSyntheticBlock6), policy::kLocalBits6};
  std::set<std::string> addresses;
  for (size_t i = 0; i < NameTable::kMostNames; ++i) {
    const auto address = table.AddressOf(Name("n" + std::to_string(i) + ".test"), kV4);
    ASSERT_TRUE(address) << i;
    EXPECT_TRUE(block.Contains(*address)) << address->text();
    EXPECT_NE(*address, IpAddress::V4(policy::kResolverAddress));
    const auto ipv6 = table.AddressOf(Name("n" + std::to_string(i) + ".test"), kV6);
    ASSERT_TRUE(ipv6) << i;
    EXPECT_TRUE(block6.Contains(*ipv6)) << ipv6->text();
    EXPECT_NE(*ipv6, IpAddress::V6(policy::kRedirectAddress6));
    addresses.insert(address->text());
    addresses.insert(ipv6->text());
  }
  EXPECT_EQ(addresses.size(), 2 * NameTable::kMostNames);
  EXPECT_FALSE(table.AddressOf(Name("one-more.test"), kV4));
  EXPECT_EQ(table.AddressOf(Name("n0.test"), kV4)->text(), "198.18.1.0") << "known ones stay";
  EXPECT_EQ(table.NameOf(IpAddress::Parse("198.18.4.255").value()), Name("n1023.test"));
  EXPECT_FALSE(table.NameOf(IpAddress::Parse("198.18.5.0").value()));
}

}  // namespace
}  // namespace coffer::egress
