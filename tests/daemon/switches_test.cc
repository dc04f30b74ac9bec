// SPDX-License-Identifier: Apache-2.0
//
// What an operator stops is stopped within a second, and what changes in the tools' directory is in force as soon.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <mutex>
#include <thread>

#include "tests/daemon/daemon.h"

namespace coffer::test {
namespace {

using Clock = std::chrono::steady_clock;

struct Running {
  std::string call;
  std::vector<pid_t> processes;  // its runner, and all below
};

class Switches : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(daemon_.Start());
    key_ = daemon_.NewKey("local", "agent", "worker")["key"];
    other_ = daemon_.NewKey("other", "agent", "bystander")["key"];
    session_ = daemon_.NewSession(key_);
    other_session_ = daemon_.NewSession(other_);
  }
  // A call that runs and does not end by itself.
  Running Start(const std::string& key, const std::string& session) {
    const std::vector<pid_t> before = daemon_.Runners();
    const HttpAnswer began = daemon_.Call(key, Bash(WaitForGo(), session), kAsync);
    EXPECT_EQ(began.status, 202) << began.text;
    EXPECT_TRUE(WaitUntil([&] { return Exists(daemon_.Workspace(session) + "/began"); }));
    Running running{began.At("call_id"), {}};
    for (const pid_t runner : daemon_.Runners()) {
      if (std::find(before.begin(), before.end(), runner) == before.end()) {
        running.processes.push_back(runner);
      }
    }
    for (size_t i = 0; i < running.processes.size(); ++i) {
      for (const pid_t child : ChildrenOf(running.processes[i])) {
        running.processes.push_back(child);
      }
    }
    EXPECT_GT(running.processes.size(), 1U);
    return running;
  }
  static bool AnyAlive(const Running& running) {
    return std::any_of(running.processes.begin(), running.processes.end(), IsAlive);
  }
  HttpAnswer View(const std::string& key, const Running& running) {
    return daemon_.Ask("GET", "/v1/calls/" + running.call, key);
  }

  Daemon daemon_;
  std::string key_, other_, session_, other_session_;
};

TEST_F(Switches, KillWhatRunsAndRefuseWhatComes) {
  const Running bystander = Start(other_, other_session_);
  for (const std::string& target : {std::string("tool/bash"), std::string("agent/worker"),
                                    "session/" + session_, std::string("tenant/local")}) {
    SCOPED_TRACE(target);
    ::unlink((daemon_.Workspace(session_) + "/began").c_str());
    const Running running = Start(key_, session_);
    EXPECT_TRUE(AnyAlive(running)) << "the control";
    const Clock::time_point begin = Clock::now();
    const HttpAnswer set =
        daemon_.Ask("PUT", "/v1/switches/" + target, daemon_.key(), R"({"reason":"incident"})");
    ASSERT_EQ(set.status, 200) << set.text;
    EXPECT_TRUE(WaitUntil([&] { return !AnyAlive(running); }, Seconds(5)));
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(1));
    const HttpAnswer refused = daemon_.Call(key_, Bash("echo hello", session_));
    EXPECT_FALSE(refused.DeniedBy().empty()) << refused.text;
    EXPECT_TRUE(WaitUntil([&] { return View(key_, running).At("state") == "finished"; }));
    EXPECT_EQ(View(key_, running).Outcome(), "terminated") << View(key_, running).text;

    if (target == "tenant/local") {  // its operators are stopped too
      EXPECT_EQ(
          RunProgram({CofferPath(), "switch", "off", "tenant", "local", "--state", daemon_.state()})
              .exit,
          0);
    } else {
      ASSERT_EQ(daemon_.Ask("DELETE", "/v1/switches/" + target, daemon_.key()).status, 204);
    }
    EXPECT_EQ(daemon_.Call(key_, Bash("echo hello", session_)).Outcome(), "success");
  }
  // Another tenant's call went on all the time.
  EXPECT_TRUE(AnyAlive(bystander));
  const HttpAnswer now = View(other_, bystander);
  EXPECT_EQ(now.At("state"), "running") << now.text;
}

// Calls are sent while the switch is flipped: whichever moment it hits, none goes on.
TEST_F(Switches, NoCallSlipsThroughWhileOneIsSet) {
  for (int round = 0; round < 5; ++round) {
    std::vector<std::string> calls;
    std::vector<std::thread> askers;
    std::mutex mutex;
    for (int i = 0; i < 6; ++i) {
      askers.emplace_back([&] {
        const HttpAnswer answer = daemon_.Call(key_, Bash("sleep 20 # " + NewToken()), kAsync);
        const std::lock_guard lock(mutex);
        calls.push_back(answer.At("call_id"));
      });
    }
    // After the first has begun, so that the others are on their way.
    EXPECT_TRUE(WaitUntil([&] { return !daemon_.Runners().empty(); }));
    EXPECT_EQ(
        daemon_.Ask("PUT", "/v1/switches/agent/worker", daemon_.key(), R"({"reason":"x"})").status,
        200);
    for (std::thread& asker : askers) {
      asker.join();
    }
    EXPECT_TRUE(WaitUntil([&] { return daemon_.Runners().empty(); }))
        << daemon_.Runners().size() << " calls go on";
    EXPECT_EQ(daemon_.Ask("DELETE", "/v1/switches/agent/worker", daemon_.key()).status, 204);
  }
}

std::string SwitchedManifest(const std::string& word) {
  return R"([tool]
name = "say"
version = "1.0.0"
owner = "tests"
summary = "Says a word."
effect = "reversible"
[input.schema]
type = "object"
[run]
runtime = "bash"
argv = ["bash", "-c", "echo )" +
         word + R"("]
[isolation]
level = "container"
[limits]
cpu = "5s"
wall = "10s"
memory = "128MiB"
processes = 16
output = "64KiB"
)";
}

class ToolsDirectory : public Switches {
 protected:
  // As an editor does it: all of it at once.
  void Put(const std::string& text) {
    const std::string path = daemon_.tools() + "/say.toml";
    std::ofstream(path + ".new") << text;
    ASSERT_EQ(::rename((path + ".new").c_str(), path.c_str()), 0);
  }
  std::string Say() {
    const HttpAnswer said = daemon_.Call(key_, {{"tool", "say"}, {"args", Json::object()}});
    return said.Outcome() == "success" ? said.body["result"]["stdout"].get<std::string>()
                                       : said.DeniedBy();
  }
  std::string State() {
    const HttpAnswer list = daemon_.Ask("GET", "/v1/tools", key_);
    for (const Json& tool : list.body["tools"]) {
      if (tool["name"] == "say") {
        return tool["state"];
      }
    }
    return "none";
  }
};

TEST_F(ToolsDirectory, IsReadAgainWhenItChanges) {
  EXPECT_EQ(Say(), "policy.tool");
  Put(SwitchedManifest("one"));
  EXPECT_TRUE(WaitUntil([&] { return State() == "ready"; }, Seconds(10)));
  EXPECT_EQ(Say(), "one\n");
  Put(SwitchedManifest("two"));
  EXPECT_TRUE(WaitUntil([&] { return Say() == "two\n"; }, Seconds(10)));
  // A mistake keeps what was good, and says so.
  Put(SwitchedManifest("three") + "\nnonsense = \n");
  EXPECT_TRUE(WaitUntil([&] { return State() == "stale"; }, Seconds(10)));
  EXPECT_EQ(Say(), "two\n");
  const HttpAnswer shown = daemon_.Ask("GET", "/v1/tools/say", key_);
  EXPECT_TRUE(Contains(shown.At("problem"), "say.toml:")) << shown.text;
  EXPECT_FALSE(Contains(shown.text, daemon_.tools())) << "a path of the host";
  Put(SwitchedManifest("four"));
  EXPECT_TRUE(WaitUntil([&] { return State() == "ready"; }, Seconds(10)));
  EXPECT_EQ(Say(), "four\n");
  ASSERT_EQ(::unlink((daemon_.tools() + "/say.toml").c_str()), 0);
  EXPECT_TRUE(WaitUntil([&] { return State() == "none"; }, Seconds(10)));
  EXPECT_EQ(Say(), "policy.tool");
  // A first version with a mistake is no tool.
  Put("[tool]\nname = \"say\"\n");
  EXPECT_TRUE(WaitUntil([&] { return State() != "none"; }, Seconds(10)));
  EXPECT_NE(State(), "ready");
  EXPECT_EQ(Say(), "policy.tool");
}

}  // namespace
}  // namespace coffer::test
