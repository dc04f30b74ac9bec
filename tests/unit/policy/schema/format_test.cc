// SPDX-License-Identifier: Apache-2.0
#include "policy/schema/format.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace coffer::policy {
namespace {

struct FormatCase {
  const char* format;
  std::vector<std::string> good;
  std::vector<std::string> bad;
};

class SchemaFormat : public testing::TestWithParam<FormatCase> {};

TEST_P(SchemaFormat, Table) {
  const Format* const format = FindFormat(GetParam().format);
  ASSERT_NE(format, nullptr);
  EXPECT_TRUE(format->check(format->example)) << format->example;
  EXPECT_NE(FormatNames().find(format->name), std::string_view::npos);
  for (const std::string& text : GetParam().good) {
    EXPECT_TRUE(format->check(text)) << format->name << ": " << text;
  }
  for (const std::string& text : GetParam().bad) {
    EXPECT_FALSE(format->check(text)) << format->name << ": " << text;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Formats, SchemaFormat,
    testing::ValuesIn(std::vector<FormatCase>{
        {"date",
         {"2024-02-29", "2000-02-29", "0000-01-01"},
         {"", "2023-02-29", "1900-02-29", "2026-04-31", "2026-13-01", "2026-1-1", "2026-01-01 ",
          "2026-00-01", "2026-01-00"}},
        {"date-time",
         {"2026-02-28T10:00:00Z", "2026-02-28t10:00:00z", "2026-02-28T10:00:00.5+01:30",
          "1990-12-31T23:59:60Z", "1990-12-31T15:59:60-08:00"},
         {"2026-02-28 10:00:00Z", "2026-02-28T10:00:00", "2026-02-28T10:00:00+0130",
          "2026-02-28T24:00:00Z", "2026-02-28T10:00:60Z", "2026-02-28T10:00:00.Z",
          "2026-02-28T10:00:00+24:00", "2026-02-28T10:00:00Zx", "", "2026-02-30T10:00:00Z"}},
        {"email",
         {"a@example.com", "a.b+c@x.y.z"},
         {"", "a", "@b.c", "a@b", "a@b..c", ".a@b.c", "a.@b.c", "a..b@b.c", "a b@b.c", "a@b.c@d.e",
          std::string(65, 'a') + "@b.c", "\"a\"@b.c"}},
        {"hostname",
         {"a", "A-1.b", std::string(63, 'a') + ".b", "1.2.3.4"},
         {"", ".", "a.", ".a", "-a", "a-", "a_b", "é", std::string(64, 'a'), "a..b",
          std::string(254, 'a')}},
        {"ipv4",
         {"0.0.0.0", "255.255.255.255"},
         {"", "1.2.3", "1.2.3.4.5", "256.0.0.1", "01.2.3.4", "1.2.3.4 ", "1.2.3.", "1..2.3",
          "0x1.2.3.4", "1.2.3.-4"}},
        {"ipv6",
         {"::", "::1", "1::", "1:2:3:4:5:6:7:8", "::ffff:1.2.3.4", "1:2:3:4:5:6:1.2.3.4",
          "1:2:3:4:5:6:7::"},
         {"", ":", ":::", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::2::3",
          "12345::", "fe80::1%eth0", "1.2.3.4", "1:2:3:4:5:6:7:1.2.3.4", "::1.2.3.256",
          "1:2:3:4:5:6:7::8", ":1", "1:", "1.2.3.4::"}},
        {"uri",
         {"https://example.com", "http://u:p@h:80/a/b;c?d=e&f#g", "urn:isbn:1", "mailto:a@b.c",
          "http://[::1]:80/", "file:///etc/hosts", "a:", "http://[v1.a:b]/", "http://a/%41"},
         {"", "//a/b", "/a", "a", "1a:b", "http://a b", "http://a:x", "http://a/%4", "http://a/%zz",
          "http://[::g]/", "http://[::1", "http://a/é", "http://a#b#c", "http://a/\\b",
          "http://u@v@w/", "http://[v1.]/", "http://[v.a]/"}},
        {"uuid",
         {"0190b6a4-2f1c-7b3e-9c55-2d1f0a6e8c11", "0190B6A4-2F1C-7B3E-9C55-2D1F0A6E8C11"},
         {"", "urn:uuid:0190b6a4-2f1c-7b3e-9c55-2d1f0a6e8c11", "0190b6a42f1c7b3e9c552d1f0a6e8c11",
          "0190b6a4-2f1c-7b3e-9c55-2d1f0a6e8c1g", "0190b6a4-2f1c-7b3e-9c552-d1f0a6e8c11"}},
    }));

TEST(SchemaFormatNames, OthersAreNotFound) {
  for (const char* name :
       {"", "regex", "Date", "time", "idn-email", "uri-reference", "date-time "}) {
    EXPECT_EQ(FindFormat(name), nullptr) << name;
  }
}

}  // namespace
}  // namespace coffer::policy
