// SPDX-License-Identifier: Apache-2.0
#include "call/run/own_addresses.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include "policy/ip_address.h"

namespace coffer::call {
namespace {

// As the C library finds them.
std::vector<std::string> LibraryAddresses() {
  std::vector<std::string> found;
  ifaddrs* list = nullptr;
  EXPECT_EQ(::getifaddrs(&list), 0);
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    char text[INET6_ADDRSTRLEN] = {};
    const void* bytes = nullptr;
    if (one->ifa_addr != nullptr && one->ifa_addr->sa_family == AF_INET) {
      bytes = &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr;
    } else if (one->ifa_addr != nullptr && one->ifa_addr->sa_family == AF_INET6) {
      bytes = &reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr;
    }
    if (bytes != nullptr &&
        ::inet_ntop(one->ifa_addr->sa_family, bytes, text, sizeof(text)) != nullptr) {
      found.push_back(policy::IpAddress::Parse(text).value().text());
    }
  }
  ::freeifaddrs(list);
  return found;
}

TEST(OwnAddresses, AreThoseOfTheLibrary) {
  const Result<std::vector<std::string>> own = OwnAddresses();
  ASSERT_TRUE(own.ok()) << own.error().message;
  EXPECT_THAT(*own, testing::UnorderedElementsAreArray(LibraryAddresses()));
  EXPECT_THAT(*own, testing::Contains("127.0.0.1"));
}

}  // namespace
}  // namespace coffer::call
