// SPDX-License-Identifier: Apache-2.0
//
// `coffer call` without a daemon is under the same configuration file and the same refusals as with one.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/run.h"
#include "tests/support/tools_fixture.h"
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

// Each call is a process of its own: what is counted is in the store.
TEST_F(CallConfig, TheBreakerCountsFromCallToCall) {
  const auto escape = [this](int number) {
    const std::string code = "import ctypes\nprint(ctypes.CDLL(None).unshare(0x10000000), " +
                             std::to_string(number) + ")";
    return RunProgram({CofferPath(), "call", "python", "--state", state_, "--args",
                       Json{{"code", code}}.dump(), "--json"});
  };
  Config("[breaker]\npause = \"1h\"\n");
  EXPECT_EQ(Call("1").exit, 0);
  EXPECT_EQ(escape(1).exit, 0);
  EXPECT_EQ(escape(2).exit, 0);
  EXPECT_EQ(escape(3).exit, 0) << "the control: two are not three";
  const RunResult fourth = escape(4);
  EXPECT_EQ(fourth.exit, 120) << fourth.Describe();
  EXPECT_EQ(ClassOf(fourth), "policy.breaker");
  EXPECT_EQ(Call("2").exit, 0) << "another tool";
  const RunResult lifted =
      RunProgram({CofferPath(), "switch", "off", "breaker", "python:cli", "--state", state_});
  EXPECT_EQ(lifted.exit, 0) << lifted.Describe();
  EXPECT_EQ(escape(5).exit, 0);
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

TEST_F(CallConfig, WhatCannotBeTakenBackRunsWithAKeyAndOnce) {
  dir_.MakeDir("tools");
  dir_.Write("tools/send.toml", IrreversibleToolText("send", "echo sent $RANDOM$RANDOM"));
  const auto send = [&](const Strings& more) {
    Strings words = {CofferPath(), "call",    "send",         "{}",    "--state",
                     state_,       "--tools", dir_ / "tools", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return RunProgram(words);
  };
  const RunResult refused = send({});
  EXPECT_EQ(refused.exit, 120) << "OPEN: " << refused.Describe();
  EXPECT_EQ(ClassOf(refused), "policy.idempotency") << refused.Describe();
  const RunResult first = send({"--idempotency-key", "one"});
  EXPECT_EQ(first.exit, 0) << "NO-CONTROL: " << first.Describe();
  EXPECT_TRUE(Contains(first.out, "sent ")) << first.Describe();
  const RunResult again = send({"--idempotency-key", "one"});
  EXPECT_EQ(again.exit, 0) << again.Describe();
  EXPECT_EQ(AnswerOf(again)["result"], AnswerOf(first)["result"]) << "OPEN: it ran again";
  const RunResult other = send({"--idempotency-key", "two"});
  EXPECT_EQ(other.exit, 0) << other.Describe();
  EXPECT_NE(AnswerOf(other)["result"], AnswerOf(first)["result"]) << "NO-CONTROL";
}

// The tool `look` lists what is mounted at /d.
class CallMount : public CallConfig {
 protected:
  CallMount() {
    dir_.MakeDir("tools");
    dir_.MakeDir("state", 0700);
    dir_.MakeDir("beside", 0777);
  }
  RunResult Look(const std::string& host, const std::string& mode = "read",
                 const std::string& runtime = "runtime = \"bash\"", const Strings& more = {}) {
    dir_.Write("tools/look.toml", R"(
[tool]
name = "look"
version = "1.0.0"
owner = "tests"
summary = "Look."
effect = "reversible"
[input.schema]
type = "object"
properties.n = { type = "string", maxLength = 64 }
[run]
)" + runtime + R"(
argv = ["bash", "-c", "ls -a /d"]
[isolation]
level = "container"
[[files.mount]]
host = ")" + host + R"("
at = "/d"
mode = ")" + mode + R"("
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
    RunOptions options;
    options.environment = {{"HOME=" + (dir_ / "home"), "PATH=/usr/bin:/bin"}};
    return RunProgram(words, options);
  }
};

// A tool that could write the store would write its own permissions.
TEST_F(CallMount, OfTheStateDirectoryIsRefused) {
  dir_.MakeDir("state/sub", 0777);
  ASSERT_EQ(::symlink("state", (dir_ / "link").c_str()), 0);
  for (const std::string& host : {state_, state_ + "/sub", state_ + "/log", dir_.path()}) {
    const RunResult run = Look(host);
    EXPECT_EQ(run.exit, 120) << host << run.Describe();
    EXPECT_EQ(ClassOf(run), "policy.path.state") << host << run.Describe();
    const Json answer = AnswerOf(run);
    EXPECT_EQ(answer.value("outcome", ""), "denied");
    EXPECT_FALSE(answer.value("call_id", "").empty()) << "a refusal has its receipt too";
  }
  const RunResult through_a_link = Look(dir_ / "link");
  EXPECT_EQ(through_a_link.exit, 120) << through_a_link.Describe();
  const RunResult beside = Look(dir_ / "beside");
  EXPECT_EQ(beside.exit, 0) << "the control: " << beside.Describe();
}

// What `coffer run` lets files name is writable for no call of this user, a declared tool's neither.
TEST_F(CallMount, OfADeclaredToolchainIsNotWritable) {
  const std::string chain = dir_.MakeDir("chain", 0777);
  if (::geteuid() == 0) {  // a tool gets no directory of root's to write to
    ASSERT_EQ(::chown(chain.c_str(), 47011, 47011), 0);
  }
  const RunResult before = Look(chain, "write");
  EXPECT_EQ(before.exit, 0) << "NO-CONTROL: " << before.Describe();
  for (const char* directory : {"home", "home/.config", "home/.config/coffer"}) {
    dir_.MakeDir(directory);
  }
  dir_.Write("home/.config/coffer/run.toml", "toolchains = [\"" + chain + "\"]\n");
  const RunResult refused = Look(chain, "write");
  EXPECT_EQ(refused.exit, 120) << "OPEN: " << refused.Describe();
  EXPECT_EQ(ClassOf(refused), "policy.path.state") << refused.Describe();
  EXPECT_EQ(Look(chain).exit, 0) << "it may be read";
}

// The worst case in the receipt is that of what was bound: /usr as a whole stands in no manifest's mounts.
TEST_F(CallMount, TheWorstCaseNamesWhatWasBound) {
  const std::string receipt = dir_ / "receipt.json";
  const auto worst = [&](const std::string& runtime) {
    const RunResult run = Look(dir_ / "beside", "read", runtime, {"--receipt", receipt});
    EXPECT_EQ(run.exit, 0) << run.Describe();
    const Json written = Json::parse(ReadFile(receipt).value_or(""), nullptr, false);
    const std::string sentence = written.value("blast_radius", "");
    EXPECT_TRUE(Contains(sentence, dir_ / "beside")) << sentence;
    for (const Json& bound : written["files"]["bound"]) {
      EXPECT_TRUE(bound["class"] == "system" || Contains(sentence, bound["path"])) << bound;
    }
    return sentence;
  };
  const std::string all =
      worst("dangerously_runtime = \"host-usr\"\nreason = \"runs what the host has\"");
  EXPECT_TRUE(Contains(all, ", /usr;")) << all;
  const std::string own = worst("runtime = \"bash\"");
  EXPECT_FALSE(Contains(own, "/usr")) << "NO-CONTROL: " << own;
}

}  // namespace
}  // namespace coffer::test
