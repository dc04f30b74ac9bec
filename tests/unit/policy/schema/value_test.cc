// SPDX-License-Identifier: Apache-2.0
#include "policy/schema/value.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "policy/schema/number.h"

namespace coffer::policy {
namespace {

TEST(SchemaNumber, ComparesAcrossTypesExactly) {
  // In ascending order; equal ones share a row.
  const std::vector<std::vector<Json>> rows = {
      {-1e300},
      {-1e19},
      {std::numeric_limits<int64_t>::min(), -9223372036854775808.0},
      {std::numeric_limits<int64_t>::min() + 1},
      {-1.5},
      {-1, -1.0},
      {-5e-324},
      {0, 0U, 0.0, -0.0},
      {5e-324},
      {0.5},
      {1, 1U, 1.0},
      {9007199254740992, 9007199254740992.0},
      {9007199254740993},
      {std::numeric_limits<int64_t>::max()},
      {9223372036854775808U, 9223372036854775808.0},
      {std::numeric_limits<uint64_t>::max()},
      {18446744073709551616.0},
      {1e300},
  };
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t k = 0; k < rows.size(); ++k) {
      for (const Json& left : rows[i]) {
        for (const Json& right : rows[k]) {
          const int sign = Number(left).Compare(Number(right));
          EXPECT_EQ(sign < 0, i < k) << left.dump() << " " << right.dump();
          EXPECT_EQ(sign > 0, i > k) << left.dump() << " " << right.dump();
          EXPECT_EQ(CanonicalText(left) == CanonicalText(right), i == k)
              << left.dump() << " " << right.dump();
        }
      }
    }
  }
}

TEST(SchemaNumber, DividesDecimals) {
  struct Division {
    Json value, divisor;
    bool multiple;
  };
  const std::vector<Division> cases = {
      {0.3, 0.1, true},
      {0.30000000000000004, 0.1, false},
      {19.99, 0.01, true},
      {1e300, 1e-300, true},
      {1e-300, 1e300, false},
      {0, 5, true},
      {-6, 3, true},
      {7, 3, false},
      {1e21, 3, false},
      {1.5, 0.5, true},
      {std::numeric_limits<uint64_t>::max(), 5, true},
      {std::numeric_limits<int64_t>::min(), 2, true},
      {5e-324, 5e-324, true},
      {1.7976931348623157e308, 5e-324, true},
      {1.7976931348623157e308, 3e-300, false},
      {2.5, 1e-3, true},
      {1, 0.3, false},
  };
  for (const Division& one : cases) {
    EXPECT_EQ(Number(one.value).MultipleOf(Number(one.divisor)), one.multiple)
        << one.value.dump() << " by " << one.divisor.dump();
  }
}

TEST(SchemaValue, CanonicalTextCannotBeForged) {
  const std::vector<Json> different = {
      Json("a"),
      Json("s1:a"),
      Json::array({"a", "b"}),
      Json::array({"as1:b"}),
      Json::array(),
      Json::object(),
      Json{{"a", 1}},
      Json{{"a", "1"}},
      Json(nullptr),
      Json(true),
      Json(1),
      Json("1"),
      Json::array({Json::array()}),
      Json::array({1, 2}),
      Json::array({12}),
      Json{{"a", Json{{"b", 1}}}},
  };
  for (size_t i = 0; i < different.size(); ++i) {
    for (size_t k = 0; k < different.size(); ++k) {
      EXPECT_EQ(CanonicalText(different[i]) == CanonicalText(different[k]), i == k)
          << i << " " << k;
    }
  }
  EXPECT_EQ(CanonicalText(Json{{"a", 1}, {"b", 2}}), CanonicalText(Json{{"b", 2.0}, {"a", 1}}));
}

TEST(SchemaValue, CountsCodePoints) {
  EXPECT_EQ(CodePoints(""), 0U);
  EXPECT_EQ(CodePoints("aé€𝄞"), 4U);
}

TEST(SchemaValue, KnowsUtf8) {
  for (const char* good :
       {"", "a", "é", "€", "𝄞", "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf", "\xee\x80\x80"}) {
    EXPECT_TRUE(IsUtf8(good)) << good;
  }
  for (const char* bad :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xc3", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82", "a\xff", "\xc3(", "\xf0\x9d\x84"}) {
    EXPECT_FALSE(IsUtf8(bad)) << testing::PrintToString(bad);
  }
}

TEST(SchemaValue, EscapesPointers) {
  EXPECT_EQ(PointerStep("", "a~b/c"), "/a~0b~1c");
  EXPECT_EQ(PointerStep("/x", ""), "/x/");
  EXPECT_EQ(PointerStep("/x", size_t{7}), "/x/7");
}

}  // namespace
}  // namespace coffer::policy
