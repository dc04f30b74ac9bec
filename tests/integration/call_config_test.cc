// SPDX-License-Identifier: Apache-2.0
//
// `coffer call` without a daemon is under the same configuration file and the same refusals as with one.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/run.h"
#include "tests/support/wreck.h"

namespace coffer::test {
namespace {

class CallConfig : public ::testing::Test {
 protected:
  RunResult Call(const std::string& word, const Strings& more = {}) {
    Strings words = {CofferPath(),
                     "call",
                     "bash",
                     "--state",
                     state_,
                     "--args",
                     Json{{"command", "echo " + word}}.dump(),
                     "--json"};
    words.insert(words.end(), more.begin(), more.end());
    ::setenv("COFFER_CONFIG", (dir_ / "config").c_str(), 1);
    return RunProgram(words);
  }
  static Json AnswerOf(const RunResult& run) { return Json::parse(run.out, nullptr, false); }
  static std::string ClassOf(const RunResult& run) {
    const Json answer = AnswerOf(run);
    return answer.is_object() && answer["error"].is_object() ? answer["error"].value("class", "")
                                                             : "";
  }
  std::string Config(const std::string& text) {
    if (!Exists(dir_ / "config")) {
      dir_.MakeDir("config");
    }
    return dir_.Write("config/coffer.toml", text);
  }

  TempDir dir_;
  std::string state_ = dir_ / "state";
};

TEST_F(CallConfig, QuotasAndBudgetsHold) {
  Config("[quotas.agent]\ncalls = [\"2/d\"]\n");
  EXPECT_EQ(Call("1").exit, 0);
  EXPECT_EQ(Call("2").exit, 0);
  const RunResult third = Call("3");
  EXPECT_EQ(third.exit, 120) << third.Describe();
  EXPECT_EQ(ClassOf(third), "policy.rate");
  // The control: more is allowed, and it runs.
  Config("[quotas.agent]\ncalls = [\"100/d\"]\n[tenant.local.budgets.tenant]\ncalls = 3\n");
  EXPECT_EQ(Call("4").exit, 0);
  const RunResult fifth = Call("5");
  EXPECT_EQ(fifth.exit, 120) << fifth.Describe();
  EXPECT_EQ(ClassOf(fifth), "policy.budget");
}

TEST_F(CallConfig, AnotherFileCanBeNamedAndMistakesRefuse) {
  const std::string tight = dir_.Write("tight.toml", "[quotas.tenant]\ncalls = [\"1/d\"]\n");
  EXPECT_EQ(Call("1", {"--config", tight}).exit, 0);
  EXPECT_EQ(ClassOf(Call("2", {"--config", tight})), "policy.rate");
  EXPECT_EQ(Call("3").exit, 0) << "the control: there is no other";
  const RunResult gone = Call("4", {"--config", dir_ / "gone.toml"});
  EXPECT_EQ(gone.exit, 120);
  EXPECT_TRUE(Contains(gone.err, "gone.toml")) << gone.err;
  Config("[quotas.tenant]\nbad = 1\nworse = 2\n");
  const RunResult bad = Call("5");
  EXPECT_EQ(bad.exit, 120);
  EXPECT_TRUE(Contains(bad.err, "coffer.toml:2:1")) << bad.err;
  EXPECT_TRUE(Contains(bad.err, "coffer.toml:3:1")) << bad.err;
}

// Where an earlier version read them they do not count any more, and that is said instead of ignored.
TEST_F(CallConfig, FilesInTheStateDirectoryAreRefusedWithTheirNewPlace) {
  dir_.MakeDir("state", 0700);
  dir_.Write("state/coffer.toml", "[quotas.agent]\ncalls = [\"1/d\"]\n");
  const RunResult refused = Call("1");
  EXPECT_EQ(refused.exit, 120) << refused.Describe();
  EXPECT_TRUE(Contains(refused.err, dir_ / "config/coffer.toml")) << refused.err;
  // The control: moved to where it says, it counts.
  dir_.MakeDir("config");
  ASSERT_EQ(::rename((dir_ / "state/coffer.toml").c_str(), (dir_ / "config/coffer.toml").c_str()),
            0);
  EXPECT_EQ(Call("1").exit, 0);
  EXPECT_EQ(ClassOf(Call("2")), "policy.rate");
  dir_.MakeDir("state/tools");
  const RunResult tools = Call("3");
  EXPECT_EQ(tools.exit, 120) << tools.Describe();
  EXPECT_TRUE(Contains(tools.err, dir_ / "config/tools")) << tools.err;
}

TEST_F(CallConfig, CeilingsHold) {
  Config("[ceilings]\nmemory = \"64MiB\"\n");
  const RunResult refused = Call("1");
  EXPECT_EQ(refused.exit, 120) << refused.Describe();
  EXPECT_EQ(ClassOf(refused), "policy.ceiling");
  Config("[ceilings]\nmemory = \"16GiB\"\n");
  EXPECT_EQ(Call("2").exit, 0) << "the control";
}

TEST_F(CallConfig, WhatIsOlderThanItsTimeIsForgotten) {
  const std::string old = AgeCall(state_, AnswerOf(Call("1")).value("call_id", ""), 2);
  const auto show = [&] {
    return RunProgram({CofferPath(), "audit", "show", old, "--state", state_}).exit;
  };
  EXPECT_EQ(Call("2").exit, 0);
  // It is there, and its row is not what was sealed: the test has made it old.
  EXPECT_EQ(show(), 1) << "the control: two days are within the ninety of the default";
  Config("[retention]\ncalls = \"24h\"\n");
  EXPECT_EQ(Call("3").exit, 0);
  EXPECT_EQ(show(), 120);
}

// A tool that could write the store would write its own permissions.
TEST_F(CallConfig, AMountOfTheStateDirectoryIsRefused) {
  dir_.MakeDir("tools");
  dir_.MakeDir("state", 0700);
  dir_.MakeDir("state/sub", 0777);
  dir_.MakeDir("beside", 0777);
  ASSERT_EQ(::symlink("state", (dir_ / "link").c_str()), 0);
  const auto look = [&](const std::string& host, const Strings& more = {}) {
    dir_.Write("tools/look.toml", R"(
[tool]
name = "look"
version = "1.0.0"
owner = "tests"
summary = "Look."
effect = "read-only"
[input.schema]
type = "object"
properties.n = { type = "string", maxLength = 64 }
[run]
runtime = "bash"
argv = ["bash", "-c", "ls -a /d"]
[isolation]
level = "container"
[[files.mount]]
host = ")" + host + R"("
at = "/d"
mode = "read"
[[examples.allow]]
args = {}
why = "any"
[[examples.deny]]
args = { a = 1 }
why = "unknown"
)");
    // What has just failed may not be tried again at once, so no two are the same.
    const std::string args = Json{{"n", NewToken()}}.dump();
    Strings words = {CofferPath(), "call", "look",    "--args",       args,
                     "--state",    state_, "--tools", dir_ / "tools", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return RunProgram(words);
  };
  for (const std::string& host : {state_, state_ + "/sub", state_ + "/log", dir_.path()}) {
    const RunResult run = look(host);
    EXPECT_EQ(run.exit, 120) << host << run.Describe();
    EXPECT_EQ(ClassOf(run), "policy.path.state") << host << run.Describe();
    const Json answer = AnswerOf(run);
    EXPECT_EQ(answer.value("outcome", ""), "denied");
    EXPECT_FALSE(answer.value("call_id", "").empty()) << "a refusal has its receipt too";
  }
  const RunResult through_a_link = look(dir_ / "link");
  EXPECT_EQ(through_a_link.exit, 120) << through_a_link.Describe();
  const RunResult beside = look(dir_ / "beside");
  EXPECT_EQ(beside.exit, 0) << "the control: " << beside.Describe();
}

}  // namespace
}  // namespace coffer::test
