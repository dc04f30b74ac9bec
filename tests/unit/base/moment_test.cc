// SPDX-License-Identifier: Apache-2.0
#include "base/moment.h"

#include <gtest/gtest.h>

namespace coffer {
namespace {

constexpr Nanos kNow = std::chrono::seconds(1'800'000'000);

TEST(Moment, AgesAreBeforeNow) {
  EXPECT_EQ(*ParseMoment("2h", kNow), kNow - std::chrono::hours(2));
  EXPECT_EQ(*ParseMoment("90s", kNow), kNow - std::chrono::seconds(90));
}

TEST(Moment, DatesAreUtc) {
  EXPECT_EQ(*ParseMoment("1970-01-02", kNow), std::chrono::hours(24));
  EXPECT_EQ(*ParseMoment("1970-01-01T01:30", kNow), std::chrono::minutes(90));
  EXPECT_EQ(*ParseMoment("1970-01-01T00:00:07Z", kNow), std::chrono::seconds(7));
  EXPECT_EQ(*ParseMoment("1970-01-01T00:00:07.250Z", kNow), std::chrono::seconds(7));
}

TEST(Moment, AnythingElseIsRefused) {
  for (const char* text :
       {"", "yesterday", "2026", "2026-13-01", "2026-01-32", "2026-01-01T", "2026-01-01T1:2",
        "2026-01-01T25:00", "2026-01-01T00:00+01:00", "2026-01-01 00:00", "1-1-1", "-5s"}) {
    EXPECT_FALSE(ParseMoment(text, kNow).ok()) << text;
  }
}

}  // namespace
}  // namespace coffer
