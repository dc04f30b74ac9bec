// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/manifest/hash.h"
#include "policy/manifest/parse.h"
#include "tests/unit/policy/manifest/manifest_text.h"

namespace coffer::policy {
namespace {

using ::testing::HasSubstr;

std::string With(const std::string& more) {
  return SmallestText() + "[files]\nworkspace = \"session-write\"\n" + more;
}

std::string FirstMistake(const std::string& text) {
  const ParsedManifest parsed = ParseManifest(text, "f");
  return parsed.mistakes.empty() ? "" : FormatMistake("f", parsed.mistakes.front());
}

TEST(ManifestBackground, IsNotAllowedUnlessItIsSaid) {
  EXPECT_FALSE(MustParse(kSmallest).background.has_value());
  const Manifest m =
      MustParse(With("[background]\nwall = \"8h\"\nports = [\"3000\", \"8000-8009\"]\n"));
  ASSERT_TRUE(m.background.has_value());
  EXPECT_EQ(m.background->wall, std::chrono::hours(8));
  EXPECT_EQ(m.background->cpu, m.limits.cpu);
  EXPECT_TRUE(AllowsPorts(m.background->ports, {3000, 8000, 8009}));
  EXPECT_FALSE(AllowsPorts(m.background->ports, {8010}));
  EXPECT_FALSE(AllowsPorts({}, {8000}));
  EXPECT_TRUE(AllowsPorts({}, {}));
  EXPECT_NE(ManifestHash(m), ManifestHash(MustParse(With(""))));
}

TEST(ManifestBackground, MistakesAreFound) {
  EXPECT_THAT(FirstMistake(With("[background]\nports = [\"3000\"]\n")), HasSubstr("wall"));
  EXPECT_THAT(FirstMistake(With("[background]\nwall = \"25h\"\n")), HasSubstr("24h"));
  for (const char* port : {"80", "0", "65536", "9000-8000", "x", "3000-", "1023-2000"}) {
    EXPECT_THAT(FirstMistake(
                    With("[background]\nwall = \"1h\"\nports = [\"" + std::string(port) + "\"]\n")),
                HasSubstr("is not a port"))
        << port;
  }
  EXPECT_THAT(FirstMistake(SmallestText() + "[background]\nwall = \"1h\"\n"),
              HasSubstr("belongs to a session"));
  EXPECT_THAT(FirstMistake(With("[background]\nwall = \"1h\"\nports = [\"3000\"]\n[isolation]\n"
                                "level = \"process\"\n")),
              HasSubstr("no ports"));
  EXPECT_EQ(FirstMistake(With("[background]\nwall = \"1h\"\n")), "") << "the control";
}

TEST(ManifestBackground, RetriesWaitAsTheManifestSays) {
  EXPECT_EQ(MustParse(kSmallest).retry, std::chrono::seconds(10));
  EXPECT_EQ(MustParse(SmallestText() + "[rate]\nretry = \"2m\"\n").retry, std::chrono::minutes(2));
  EXPECT_EQ(MustParse(SmallestText() + "[rate]\nretry = \"off\"\n").retry, Nanos(0));
  EXPECT_THAT(FirstMistake(SmallestText() + "[rate]\nretry = \"never\"\n"),
              HasSubstr("rate.retry"));
}

}  // namespace
}  // namespace coffer::policy
