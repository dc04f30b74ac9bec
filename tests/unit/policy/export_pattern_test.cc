// SPDX-License-Identifier: Apache-2.0
#include "policy/export_pattern.h"

#include <gtest/gtest.h>

namespace coffer::policy {
namespace {

TEST(ExportPattern, APathHasOneForm) {
  for (const std::string good :
       {"a", "a/b", ".hidden", "a b", "\xc3\xa9t\xc3\xa9.html", "x\\y", "*"}) {
    EXPECT_TRUE(IsExportPath(good)) << good;
  }
  for (const std::string bad : {"", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a\nb", "a\x7f",
                                "\xff", "a\xc2\x9b", "\xed\xa0\x80"}) {
    EXPECT_FALSE(IsExportPath(bad)) << bad;
  }
  EXPECT_FALSE(IsExportPath(std::string("a\0b", 3)));
  EXPECT_TRUE(IsExportPath(std::string(255, 'x')));
  EXPECT_FALSE(IsExportPath(std::string(256, 'x')));
  std::string deep = "d";
  for (size_t i = 1; i < kDeepestExport; ++i) {
    deep += "/d";
  }
  EXPECT_TRUE(IsExportPath(deep));
  EXPECT_FALSE(IsExportPath(deep + "/d"));
  EXPECT_FALSE(IsExportPath(std::string(200, 'a') + "/" + std::string(200, 'b') + "/" +
                            std::string(200, 'c')));
}

TEST(ExportPattern, TwoStarsAreTheLastPart) {
  for (const std::string good : {"**", "a/**", "*.png", "a/*/b", "a*b*c", "report.html"}) {
    EXPECT_TRUE(IsExportPattern(good)) << good;
  }
  for (const std::string bad :
       {"", "/**", "**/a", "a**", "a/**b", "../**", "/etc/passwd", "a/**/**"}) {
    EXPECT_FALSE(IsExportPattern(bad)) << bad;
  }
}

TEST(ExportPattern, AStarIsWithinOneName) {
  const auto matches = [](const char* part, const char* name) { return MatchesPart(part, name); };
  EXPECT_TRUE(matches("*", "anything"));
  EXPECT_TRUE(matches("*.png", "a.png"));
  EXPECT_TRUE(matches("*.png", ".png"));
  EXPECT_TRUE(matches("a*b*c", "abbcbc"));
  EXPECT_TRUE(matches("a*", "a"));
  EXPECT_FALSE(matches("*.png", "a.png.exe"));
  EXPECT_FALSE(matches("a*b", "ab c"));
  EXPECT_FALSE(matches("plain", "Plain"));
  // A pattern that a backtracking matcher needs years for.
  EXPECT_FALSE(MatchesPart("*a*a*a*a*a*a*a*a*a*a*a*a*b", std::string(255, 'a')));
}

TEST(ExportPattern, PartsAreSplitAtSlashes) {
  EXPECT_EQ(PartsOf("a/b/**"), (std::vector<std::string>{"a", "b", "**"}));
  EXPECT_EQ(PartsOf("a"), (std::vector<std::string>{"a"}));
}

}  // namespace
}  // namespace coffer::policy
