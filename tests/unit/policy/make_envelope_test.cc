// SPDX-License-Identifier: Apache-2.0
#include "policy/make_envelope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/policy/manifest/manifest_text.h"

namespace coffer::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

Manifest WithoutStaged() {
  Manifest manifest = MustParse(kEverything);
  manifest.mounts.pop_back();
  return manifest;
}

TEST(MakeEnvelope, TheSmallestManifestMakesAnEmptyEnvelope) {
  const Result<ToolCall> call =
      MakeToolCall(MustParse(kSmallest), Json::object(), {"/state/sessions/1"});
  ASSERT_TRUE(call.ok());
  Envelope expected;
  expected.level = Level::kContainer;
  expected.runtimes = {"sh"};
  EXPECT_EQ(CanonicalForm(call->envelope), CanonicalForm(expected));
  EXPECT_THAT(call->command, ElementsAre("cat"));
  EXPECT_EQ(call->stdin_text, "");
}

TEST(MakeEnvelope, ExecutionIsNotGrantedByDefault) {
  EXPECT_FALSE(MustParse(kSmallest).exec);
  const std::string granted = SmallestText() + "[files]\nexec = true\n";
  const Result<ToolCall> call = MakeToolCall(MustParse(granted), Json::object(), {});
  ASSERT_TRUE(call.ok());
  EXPECT_TRUE(call->envelope.exec);
  const Result<ToolCall> plain = MakeToolCall(MustParse(kSmallest), Json::object(), {});
  ASSERT_TRUE(plain.ok());
  EXPECT_FALSE(plain->envelope.exec);
  EXPECT_NE(EnvelopeId(plain->envelope), EnvelopeId(call->envelope));
}

TEST(MakeEnvelope, FurtherRuntimesAreOptional) {
  std::string text = SmallestText();
  const size_t at = text.find("runtime");
  ASSERT_NE(at, std::string::npos);
  text.insert(at, "also = [\"git\", \"jq\"]\n");
  const Result<ToolCall> call = MakeToolCall(MustParse(text), Json::object(), {});
  ASSERT_TRUE(call.ok());
  EXPECT_THAT(call->envelope.runtimes, ElementsAre("sh"));
  EXPECT_THAT(call->envelope.optional_runtimes, ElementsAre("git", "jq"));
}

TEST(MakeEnvelope, EveryGrantArrives) {
  const Json args = {{"code", "print(1)"}, {"file", "a/b.csv"}, {"lines", 3}, {"mood", "calm"}};
  const Result<ToolCall> call = MakeToolCall(WithoutStaged(), args, {"/state/sessions/1"});
  ASSERT_TRUE(call.ok()) << call.error().message;
  EXPECT_THAT(call->command, ElementsAre("python3", "-I", "-n", "3", "-", "/data/a/b.csv"));
  EXPECT_EQ(call->stdin_text, "print(1)");
  const Envelope& envelope = call->envelope;
  EXPECT_EQ(envelope.level, Level::kContainer);
  EXPECT_TRUE(envelope.floor.Has(Layer::kLandlock));
  EXPECT_EQ(envelope.syscalls, SyscallProfile::kStrict);
  EXPECT_EQ(envelope.limits.memory, 300ULL << 20);
  EXPECT_THAT(envelope.runtimes, ElementsAre("python3"));
  EXPECT_THAT(envelope.mounts, ElementsAre(Mount{"/srv/invoices", "/data", Access::kRead}));
  EXPECT_THAT(envelope.env, ElementsAre(Pair("LANG", "C.UTF-8"), Pair("MOOD", "calm")));
  EXPECT_EQ(envelope.cwd, "/data");
  EXPECT_EQ(envelope.workspace, "/state/sessions/1");
  EXPECT_EQ(envelope.workspace_access, Access::kRead);
  EXPECT_FALSE(envelope.tty);
  EXPECT_NE(envelope.uid, 0U);
}

TEST(MakeEnvelope, TheWorkspaceIsTheSessionsOnlyIfDeclaredAndThere) {
  Manifest manifest = WithoutStaged();
  const Json args = {{"code", "1"}, {"file", "a"}};
  EXPECT_EQ(MakeToolCall(manifest, args, {})->envelope.workspace, "");
  manifest.workspace = Workspace::kSessionWrite;
  EXPECT_EQ(MakeToolCall(manifest, args, {"/s"})->envelope.workspace_access, Access::kWrite);
  manifest.workspace = Workspace::kFresh;
  EXPECT_EQ(MakeToolCall(manifest, args, {"/s"})->envelope.workspace, "");
}

TEST(MakeEnvelope, DangerTravelsWithTheMountAndIntoTheId) {
  Manifest manifest = WithoutStaged();
  const Json args = {{"code", "1"}, {"file", "a"}};
  const std::string plain = EnvelopeId(MakeToolCall(manifest, args, {})->envelope);
  manifest.mounts[0].dangerous = true;
  const Result<ToolCall> call = MakeToolCall(manifest, args, {});
  EXPECT_TRUE(call->envelope.mounts[0].dangerous);
  EXPECT_NE(EnvelopeId(call->envelope), plain);
}

TEST(MakeEnvelope, RefusesRatherThanGuesses) {
  EXPECT_FALSE(
      MakeToolCall(MustParse(kEverything), {{"code", "1"}, {"file", "a"}}, {}).ok());  // staged
  EXPECT_FALSE(MakeToolCall(WithoutStaged(), {{"code", "1"}, {"file", "../a"}}, {}).ok());
  EXPECT_FALSE(MakeToolCall(WithoutStaged(), Json::array(), {}).ok());
  EXPECT_FALSE(MakeToolCall(WithoutStaged(), nullptr, {}).ok());
}

}  // namespace
}  // namespace coffer::policy
