// SPDX-License-Identifier: Apache-2.0
#include "base/quantity.h"

#include <gtest/gtest.h>

namespace coffer {
namespace {

TEST(Quantity, SizesAreWhatPeopleMean) {
  const std::pair<const char*, uint64_t> cases[] = {
      {"1", 1},
      {"4096", 4096},
      {"7B", 7},
      {"64K", 65536},
      {"64KiB", 65536},
      {"1kB", 1000},
      {"1KB", 1000},
      {"1M", 1 << 20},
      {"1MB", 1000000},
      {"256MiB", 1 << 28},
      {"2GiB", 2ULL << 30},
      {"1G", 1ULL << 30},
      {"1GB", 1000000000},
      {"1TiB", 1ULL << 40},
      {"1TB", 1000000000000},
      {"1152921504606846976", 1ULL << 60},
      {"0064KiB", 65536},
  };
  for (const auto& [text, bytes] : cases) {
    const auto size = ParseSize(text);
    ASSERT_TRUE(size.ok()) << text;
    EXPECT_EQ(*size, bytes) << text;
  }
}

TEST(Quantity, NothingElseIsASize) {
  for (const char* text : {"",
                           " ",
                           "-1",
                           "+1",
                           "0",
                           "0KiB",
                           "1e99",
                           "1e3",
                           "10XB",
                           "1.5MiB",
                           "MiB",
                           "1 MiB",
                           " 1",
                           "1 ",
                           "0x10",
                           "inf",
                           "max",
                           "unlimited",
                           "18446744073709551615",
                           "18446744073709551616",
                           "99999999999999999999999",
                           "1152921504606846977",
                           "16777216TiB",
                           "18014398509481984KiB",
                           "1mib",
                           "1PiB",
                           "1\n",
                           "1MiB\n",
                           "٣"}) {
    const auto size = ParseSize(text);
    ASSERT_FALSE(size.ok()) << text;
    EXPECT_EQ(size.error().kind, ErrorKind::kRefused) << text;
    EXPECT_FALSE(size.error().hint.empty()) << text;
  }
  EXPECT_FALSE(ParseSize(std::string_view("1\0", 2)).ok());
}

TEST(Quantity, Durations) {
  using std::chrono::milliseconds;
  const std::pair<const char*, milliseconds> cases[] = {
      {"1ms", milliseconds(1)},      {"500ms", milliseconds(500)},
      {"10", milliseconds(10000)},   {"10s", milliseconds(10000)},
      {"2m", milliseconds(120000)},  {"2min", milliseconds(120000)},
      {"1h", milliseconds(3600000)}, {"366d", milliseconds(366ULL * 86400000)},
  };
  for (const auto& [text, time] : cases) {
    const auto parsed = ParseDuration(text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(*parsed, Nanos(time)) << text;
  }
  for (const char* text :
       {"", "0", "0ms", "-1", "-1s", "1e99", "1.5h", "10XB", "367d", "1us", "1ns", "forever",
        "9223372036854775807", "18446744073709551615h", "1 s"}) {
    EXPECT_FALSE(ParseDuration(text).ok()) << text;
  }
}

TEST(Quantity, Counts) {
  EXPECT_EQ(*ParseCount("1"), 1U);
  EXPECT_EQ(*ParseCount("1000000"), 1000000U);
  for (const char* text :
       {"", "0", "-1", "1000001", "1K", "1e3", "4294967297", "18446744073709551617", "1,000"}) {
    EXPECT_FALSE(ParseCount(text).ok()) << text;
  }
}

TEST(Quantity, FormattingIsExactAndReadsBack) {
  for (const uint64_t bytes :
       {1ULL, 1023ULL, 1024ULL, 1025ULL, 1ULL << 20, (1ULL << 20) + 1, 3ULL << 30, 1ULL << 40}) {
    const auto back = ParseSize(FormatSize(bytes));
    ASSERT_TRUE(back.ok()) << FormatSize(bytes);
    EXPECT_EQ(*back, bytes);
  }
  EXPECT_EQ(FormatSize(256 << 20), "256MiB");
  EXPECT_EQ(FormatSize(1000), "1000B");
  EXPECT_EQ(FormatDuration(std::chrono::milliseconds(500)), "500ms");
  EXPECT_EQ(FormatDuration(std::chrono::minutes(2)), "120s");
}

}  // namespace
}  // namespace coffer
