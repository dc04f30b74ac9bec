// SPDX-License-Identifier: Apache-2.0
#include "egress/ca_stock.h"

#include <gtest/gtest.h>

#include <set>

namespace coffer::egress {
namespace {

using policy::EgressRule;

std::vector<EgressRule> Rules(const std::string& host) {
  return {policy::ParseAllow("GET https://" + host + "/").value()};
}

class CaStockTest : public ::testing::Test {
 protected:
  std::string Take(const std::string& host, Nanos now = Nanos(0)) {
    const auto ca = stock_.Take(Rules(host), now);
    EXPECT_TRUE(ca.ok());
    return ca.ok() ? (*ca)->certificate() : "";
  }
  // How many were made.
  int RefillAll(Nanos now = Nanos(0)) {
    int made = 0;
    while (stock_.Refill(now)) {
      ++made;
    }
    return made;
  }
  CaStock stock_;
};

// Every certificate has its own key and serial number: two that are the same would be one CA.
TEST_F(CaStockTest, EachIsHandedOutOnce) {
  std::set<std::string> seen;
  for (int i = 0; i < 6; ++i) {
    EXPECT_TRUE(seen.insert(Take("api.test")).second) << i;
    if (i % 2 == 0) {
      EXPECT_EQ(RefillAll(), 1);
    }
  }
  EXPECT_EQ(RefillAll(), 1);
  EXPECT_EQ(RefillAll(), 0) << "one spare of each kind";
}

TEST_F(CaStockTest, ASpareIsForTheSameRules) {
  Take("api.test");
  RefillAll();
  const auto other = stock_.Take(Rules("other.test"), Nanos(0));
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(RefillAll(), 1) << "the spare of the first is still there";
  EXPECT_NE(BoundaryCa::Constraints(Rules("api.test")),
            BoundaryCa::Constraints(Rules("other.test")));
}

TEST_F(CaStockTest, AnOldSpareIsNotUsed) {
  Take("api.test");
  EXPECT_EQ(RefillAll(), 1);
  Take("api.test", CaStock::kMostAge - Nanos(1));
  EXPECT_EQ(RefillAll(Nanos(5)), 1);
  Take("api.test", Nanos(5) + CaStock::kMostAge);
  EXPECT_EQ(RefillAll(), 1) << "it is gone either way";
}

TEST_F(CaStockTest, ItIsBounded) {
  for (size_t i = 0; i < CaStock::kMostKinds + 5; ++i) {
    Take("h" + std::to_string(i) + ".test");
  }
  EXPECT_EQ(RefillAll(), static_cast<int>(CaStock::kMostKinds));
}

}  // namespace
}  // namespace coffer::egress
