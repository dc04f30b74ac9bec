// SPDX-License-Identifier: Apache-2.0
#include "policy/make_envelope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "policy/narrowing.h"
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

TEST(MakeEnvelope, AnOverlayIsAskedForAndNeverLeftOut) {
  const std::string asked = SmallestText() + "[files]\noverlay = true\n";
  const Result<ToolCall> behind = MakeToolCall(MustParse(asked), Json::object(), {});
  const Result<ToolCall> plain = MakeToolCall(MustParse(kSmallest), Json::object(), {});
  ASSERT_TRUE(behind.ok() && plain.ok());
  EXPECT_TRUE(behind->envelope.overlay);
  EXPECT_FALSE(plain->envelope.overlay);
  EXPECT_NE(EnvelopeId(plain->envelope), EnvelopeId(behind->envelope));
  EXPECT_TRUE(Covers(plain->envelope, behind->envelope));
  EXPECT_FALSE(Covers(behind->envelope, plain->envelope)) << "a live view is wider";
  const Result<Envelope> both = Intersect(behind->envelope, plain->envelope);
  ASSERT_TRUE(both.ok());
  EXPECT_TRUE(both->overlay);
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

TEST(MakeEnvelope, AProjectStandsInForTheFilesOfTheSession) {
  const CallPlaces places{"/state/sessions/1", "/home/me/project"};
  Manifest manifest = MustParse(kSmallest);
  manifest.workspace = Workspace::kSessionWrite;
  Result<ToolCall> call = MakeToolCall(manifest, Json::object(), places);
  const Mount written{places.project, places.project, Access::kWrite};
  EXPECT_EQ(call->envelope.mounts, std::vector<Mount>{written});
  EXPECT_EQ(call->envelope.workspace, "");
  EXPECT_EQ(call->envelope.cwd, places.project);
  manifest.workspace = Workspace::kSessionRead;
  call = MakeToolCall(manifest, Json::object(), places);
  EXPECT_EQ(call->envelope.mounts.at(0).access, Access::kRead);
  manifest.workspace = Workspace::kFresh;
  call = MakeToolCall(manifest, Json::object(), places);
  EXPECT_TRUE(call->envelope.mounts.empty());
  EXPECT_EQ(call->envelope.cwd, "/workspace");
  EXPECT_EQ(WorkspacePath("/workspace/a/b", places), "/home/me/project/a/b");
  EXPECT_EQ(WorkspacePath("/workspaces", places), "/workspaces");
  EXPECT_EQ(WorkspacePath("/tmp", places), "/tmp");
  EXPECT_EQ(WorkspacePath("/workspace", {"/s", ""}), "/workspace");
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
