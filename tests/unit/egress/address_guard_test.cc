// SPDX-License-Identifier: Apache-2.0
#include "egress/address_guard.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace coffer::egress {
namespace {

using policy::AddressRange;
using policy::HostName;
using policy::IpAddress;

IpAddress Parsed(const char* text) { return IpAddress::Parse(text).value(); }
HostName Host(const char* text) { return HostName::Parse(text).value(); }
std::vector<AddressRange> Ranges(std::initializer_list<const char*> texts) {
  std::vector<AddressRange> ranges;
  for (const char* text : texts) {
    ranges.push_back(policy::ParseAddressRange(text).value());
  }
  return ranges;
}

// Where a name must not lead, however it is written: one row for each class and its edges.
constexpr const char* kClosed[] = {"127.0.0.1",
                                   "127.255.255.254",
                                   "0.0.0.0",
                                   "0.1.2.3",
                                   "10.0.0.1",
                                   "10.255.255.255",
                                   "100.64.0.1",
                                   "100.127.255.255",
                                   "100.100.100.200",
                                   "168.63.129.16",
                                   "169.254.0.1",
                                   "169.254.169.254",
                                   "169.254.170.2",
                                   "172.16.0.1",
                                   "172.31.255.255",
                                   "192.0.0.1",
                                   "192.0.2.1",
                                   "192.88.99.1",
                                   "192.168.0.1",
                                   "198.18.0.1",
                                   "198.19.255.255",
                                   "198.51.100.1",
                                   "203.0.113.1",
                                   "224.0.0.1",
                                   "239.255.255.255",
                                   "240.0.0.1",
                                   "255.255.255.255",
                                   "::",
                                   "::1",
                                   "::127.0.0.1",
                                   "::ffff:127.0.0.1",
                                   "::ffff:10.0.0.1",
                                   "::ffff:169.254.169.254",
                                   "::ffff:0:7f00:1",
                                   "64:ff9b::7f00:1",
                                   "64:ff9b::808:808",
                                   "64:ff9b:1::1",
                                   "100::1",
                                   "2001::1",
                                   "2001:db8::1",
                                   "2002:7f00:1::",
                                   "2002:808:808::1",
                                   "fc00::1",
                                   "fd00:ec2::254",
                                   "fdff::1",
                                   "fe80::1",
                                   "febf::1",
                                   "fec0::1",
                                   "ff02::1",
                                   "4000::1",
                                   "1::1"};
constexpr const char* kOpen[] = {
    "8.8.8.8",         "9.255.255.255",  "11.0.0.1",     "100.63.0.1",
    "100.128.0.1",     "172.15.255.255", "172.32.0.1",   "192.0.1.1",
    "192.167.255.255", "198.17.0.1",     "198.20.0.1",   "223.255.255.255",
    "168.63.129.17",   "2606:2800::1",   "2a00:1450::1", "::ffff:8.8.8.8"};

TEST(AddressGuard, OnlyTheInternet) {
  const AddressGuard guard;
  for (const char* address : kClosed) {
    EXPECT_TRUE(guard.Object(Host("api.test"), Parsed(address))) << address;
  }
  for (const char* address : kOpen) {
    EXPECT_FALSE(guard.Object(Host("api.test"), Parsed(address))) << address;
  }
}

TEST(AddressGuard, ARangeOpensItsOwnBlock) {
  const auto open = [](std::initializer_list<const char*> ranges, const char* address) {
    return !AddressGuard(Ranges(ranges)).Object(Host("api.test"), Parsed(address)).has_value();
  };
  EXPECT_TRUE(open({"127.0.0.0/8"}, "127.0.0.1"));
  EXPECT_TRUE(open({"127.0.0.0/8"}, "::ffff:127.0.0.1"));
  EXPECT_FALSE(open({"127.0.0.0/8"}, "::1"));
  EXPECT_FALSE(open({"127.0.0.0/8"}, "10.0.0.1"));
  EXPECT_TRUE(open({"::1"}, "::1"));
  EXPECT_TRUE(open({"10.1.0.0/16"}, "10.1.2.3"));
  EXPECT_FALSE(open({"10.1.0.0/16"}, "10.2.0.1"));
  EXPECT_FALSE(open({"169.254.0.0/16"}, "169.254.169.254")) << "inside, and a block of its own";
  EXPECT_TRUE(open({"169.254.0.0/16"}, "169.254.1.1"));
  EXPECT_TRUE(open({"169.254.169.254"}, "169.254.169.254"));
  EXPECT_FALSE(open({"fc00::/7"}, "fd00:ec2::254"));
  EXPECT_FALSE(open({"100.64.0.0/10"}, "100.100.100.200"));
  EXPECT_FALSE(open({"0.0.0.0/0", "::/0"}, "127.0.0.1")) << "wider than the block";
  EXPECT_FALSE(open({"0.0.0.0/0", "::/0"}, "169.254.169.254"));
  EXPECT_FALSE(open({"224.0.0.0/4", "0.0.0.0/8"}, "224.0.0.1")) << "nobody to talk to";
  EXPECT_FALSE(open({"224.0.0.0/4", "0.0.0.0/8"}, "0.0.0.0"));
  // What an address stands for is judged too.
  EXPECT_TRUE(open({"64:ff9b::/96"}, "64:ff9b::808:808"));
  EXPECT_FALSE(open({"64:ff9b::/96"}, "64:ff9b::a9fe:a9fe"));
  EXPECT_FALSE(open({"2002::/16"}, "2002:7f00:1::"));
  EXPECT_TRUE(open({"2002::/16", "127.0.0.0/8"}, "2002:7f00:1::"));
}

TEST(AddressGuard, OwnAddressesAndNumbersInsteadOfNames) {
  const AddressGuard guard(Ranges({"10.0.0.0/8", "127.0.0.0/8"}),
                           {Parsed("10.0.0.5"), Parsed("8.8.4.4"), Parsed("127.0.0.1")});
  EXPECT_TRUE(guard.Object(Host("api.test"), Parsed("10.0.0.5")));
  EXPECT_TRUE(guard.Object(Host("api.test"), Parsed("::ffff:8.8.4.4")));
  EXPECT_FALSE(guard.Object(Host("api.test"), Parsed("10.0.0.6")));
  EXPECT_FALSE(guard.Object(Host("api.test"), Parsed("127.0.0.1")));
  const AddressGuard named(Ranges({"10.0.0.5"}), {Parsed("10.0.0.5")});
  EXPECT_FALSE(named.Object(Host("api.test"), Parsed("10.0.0.5")));

  EXPECT_TRUE(AddressGuard().Object(Host("8.8.8.8"), Parsed("8.8.8.8")));
  EXPECT_FALSE(AddressGuard(Ranges({"8.8.8.0/24"})).Object(Host("8.8.8.8"), Parsed("8.8.8.8")));
}

TEST(AddressGuard, NamesThatAreNeverResolved) {
  for (const char* name :
       {"localhost", "a.localhost", "metadata.google.internal", "metadata", "instance-data"}) {
    EXPECT_TRUE(ObjectToHostName(Host(name))) << name;
  }
  for (const char* name : {"api.test", "localhost.test", "metadata.test", "notlocalhost"}) {
    EXPECT_FALSE(ObjectToHostName(Host(name))) << name;
  }
}

// The list was made when the call began. An address that the host has got since is asked for.
TEST(AddressGuard, AnAddressThatIsOwnByNowIsRefused) {
  const auto is_own = [](const IpAddress& address) { return address.text() == "8.8.4.8"; };
  const AddressGuard guard({}, {Parsed("8.8.4.4")}, is_own);
  EXPECT_EQ(guard.Object(Host("a.test"), Parsed("8.8.4.4")), "an address of this host");
  EXPECT_EQ(guard.Object(Host("a.test"), Parsed("8.8.4.8")), "an address of this host");
  EXPECT_EQ(guard.Object(Host("a.test"), Parsed("::ffff:8.8.4.8")), "an address of this host");
  EXPECT_EQ(guard.Object(Host("a.test"), Parsed("8.8.4.9")), std::nullopt);
  EXPECT_EQ(
      AddressGuard(Ranges({"8.8.4.8/32"}), {}, is_own).Object(Host("a.test"), Parsed("8.8.4.8")),
      std::nullopt);
  EXPECT_NE(
      AddressGuard(Ranges({"8.8.4.0/24"}), {}, is_own).Object(Host("a.test"), Parsed("8.8.4.8")),
      std::nullopt)
      << "not by its number";
}

TEST(AddressGuard, TheKernelSaysWhichAddressesAreOwn) {
  EXPECT_TRUE(IsOwnAddressNow(Parsed("127.0.0.1")));
  EXPECT_FALSE(IsOwnAddressNow(Parsed("203.0.113.77")));
  EXPECT_FALSE(IsOwnAddressNow(Parsed("2001:db8::77")));
}

}  // namespace
}  // namespace coffer::egress
