// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/known_tenants.h"

#include <gtest/gtest.h>

namespace coffer::gateway {
namespace {

std::string HeadOf(const std::string& fields) {
  return "GET /v1/tools HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n";
}

TEST(KnownTenants, AnAcceptedTokenTellsItsTenant) {
  KnownTenants known;
  EXPECT_EQ(known.Find("one"), "");
  known.Remember("one", "acme");
  EXPECT_EQ(known.Find("one"), "acme");
  EXPECT_EQ(known.Find("on"), "");
  known.Remember("one", "globex");
  EXPECT_EQ(known.Find("one"), "globex") << "the last answer counts";
}

TEST(KnownTenants, ARefusedTokenIsForgotten) {
  KnownTenants known;
  known.Remember("one", "acme");
  known.Remember("two", "acme");
  known.Forget("one");
  known.Forget("three");
  EXPECT_EQ(known.Find("one"), "");
  EXPECT_EQ(known.Find("two"), "acme") << "the control: another token of that tenant";
}

TEST(KnownTenants, OnlyTheRequestsOwnFieldCounts) {
  const HttpLimits limits;
  KnownTenants known;
  known.Remember("one", "acme");
  const std::string field = "Authorization: Bearer one\r\n";
  EXPECT_EQ(known.FindInHead(HeadOf(field), limits), "acme");
  EXPECT_EQ(known.FindInHead(HeadOf("authorization: bearer one\r\n"), limits), "acme");
  for (const std::string& bytes :
       {std::string(), HeadOf(""), HeadOf("Authorization: Bearer two\r\n"), HeadOf(field + field),
        HeadOf("Authorization: Basic one\r\n"), HeadOf("") + field + "\r\n",
        HeadOf(field).substr(0, HeadOf(field).size() - 2), "\x16\x03\x01" + HeadOf(field)}) {
    EXPECT_EQ(known.FindInHead(bytes, limits), "") << bytes;
  }
}

TEST(KnownTenants, ItsMemoryIsBounded) {
  KnownTenants known(2);
  known.Remember("one", "acme");
  known.Remember("two", "acme");
  known.Remember("two", "acme");
  EXPECT_EQ(known.Find("one"), "acme") << "the control: two are remembered";
  known.Remember("three", "globex");
  EXPECT_EQ(known.Find("three"), "globex");
  EXPECT_EQ(known.Find("one"), "");
}

}  // namespace
}  // namespace coffer::gateway
