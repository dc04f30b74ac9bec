// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/manifest/hash.h"
#include "policy/manifest/parse.h"
#include "tests/unit/policy/manifest/manifest_text.h"

namespace coffer::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string WithCalls(const std::string& calls, const std::string& more = "") {
  return SmallestText() + "[calls]\n" + calls + "\n" + more;
}

std::string MistakeIn(const std::string& text) {
  const ParsedManifest parsed = ParseManifest(text, "f");
  return parsed.mistakes.empty() ? "" : FormatMistake("f", parsed.mistakes.front());
}

TEST(ManifestCalls, NoneUnlessTheyAreNamed) {
  EXPECT_TRUE(MustParse(kSmallest).calls.tools.empty());
  const Manifest m = MustParse(WithCalls("tools = [\"b\", \"a\"]"));
  EXPECT_THAT(m.calls.tools, ElementsAre("a", "b"));
  EXPECT_EQ(m.calls.most, 100U);
  EXPECT_NE(ManifestHash(m), ManifestHash(MustParse(kSmallest)));
  EXPECT_NE(ManifestHash(m), ManifestHash(MustParse(WithCalls("tools = [\"a\"]"))));
  EXPECT_NE(ManifestHash(m),
            ManifestHash(MustParse(WithCalls("tools = [\"a\", \"b\"]\nmost = 99"))));
  EXPECT_EQ(ManifestHash(m), ManifestHash(MustParse(WithCalls("tools = [\"a\", \"b\"]"))))
      << "the control";
}

TEST(ManifestCalls, MistakesAreFound) {
  EXPECT_THAT(MistakeIn(WithCalls("tools = []")), HasSubstr("an empty list"));
  EXPECT_THAT(MistakeIn(WithCalls("most = 5")), HasSubstr("tools: is missing"));
  EXPECT_THAT(MistakeIn(WithCalls("tools = [\"a\", \"a\"]")), HasSubstr("twice"));
  EXPECT_THAT(MistakeIn(WithCalls("tools = [\"A b\"]")), HasSubstr("is not a tool's name"));
  EXPECT_THAT(MistakeIn(WithCalls("tools = [\"a\"]\nmost = 0")), HasSubstr("most"));
  EXPECT_THAT(MistakeIn(WithCalls("tools = [\"a\"]\nmost = 10001")), HasSubstr("most"));
  EXPECT_THAT(MistakeIn(WithCalls("tools = [\"" + MustParse(kSmallest).tool.name + "\"]")),
              HasSubstr("does not call itself"));
  EXPECT_THAT(MistakeIn(WithCalls("tools = [\"a\"]", "[isolation]\nlevel = \"process\"\n")),
              HasSubstr("no sockets"));
  EXPECT_THAT(MistakeIn(WithCalls("tools = [\"a\"]", "[isolation]\nsyscalls = \"strict\"\n")),
              HasSubstr("strict"));
  EXPECT_THAT(
      MistakeIn(WithCalls("tools = [\"a\"]",
                          "[files]\nworkspace = \"session-write\"\n[background]\nwall = \"1h\"\n")),
      HasSubstr("in the background calls no tools"));
  EXPECT_EQ(MistakeIn(WithCalls("tools = [\"a\"]")), "") << "the control";
}

}  // namespace
}  // namespace coffer::policy
