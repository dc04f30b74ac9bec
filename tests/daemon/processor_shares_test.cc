// SPDX-License-Identifier: Apache-2.0
//
// Tenants share the processors (limits/cgroup/tenant_level.h): calls of one that burn CPU time leave another its share,
// and what they have in common is gone with the last of them, also after a kill.
//
// The share is compared with that of the same call made by the tenant that burns, which competes with its own.
#include <dirent.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "limits/cgroup/host.h"
#include "limits/cgroup/name.h"
#include "limits/cgroup/tenant_level.h"
#include "tests/daemon/daemon.h"
#include "tests/support/tools_fixture.h"

namespace coffer::test {
namespace {

class ProcessorShares : public ::testing::Test {
 protected:
  void SetUp() override {
    const Result<limits::CgroupHost> host = limits::ProbeCgroups();
    ASSERT_TRUE(host.ok());
    parent_ = limits::TenantLevelParent(*host);
    if (parent_.empty()) {
      GTEST_SKIP() << "boundaries get no cpu controller here: "
                   << host->at(limits::Controller::kCpu).why_not;
    }
    pid_namespace_ = host->pid_namespace;
    before_ = AllLevels();
    const std::string limits = "[limits]\nmemory = \"64MiB\"\ncpu = \"60s\"\nwall = \"90s\"\n";
    Declare("burn", "for i in 1 2; do while :; do :; done & done; wait", limits);
    Declare("measure",
            "s=$EPOCHREALTIME; e=$((SECONDS + 4)); while ((SECONDS < e)); do :; done\n"
            "echo $s $EPOCHREALTIME; times",
            limits);
    Declare("short", "cat /proc/self/cgroup; ls /sys/fs/cgroup /sys/fs/cgroup/memory; true",
            limits);
    ASSERT_TRUE(daemon_.Start());
    one_ = daemon_.NewKey("one", "operator", "a")["key"];
    other_ = daemon_.NewKey("other", "operator", "a")["key"];
  }
  void Declare(const std::string& name, const std::string& script, const std::string& more) {
    std::ofstream(daemon_.tools() + "/" + name + ".toml") << BashToolText(name, script, more);
  }

  // The levels of all calls, of every daemon.
  Strings CallsLevels() const {
    Strings names;
    for (const auto& entry : std::filesystem::directory_iterator(parent_)) {
      const std::string name = entry.path().filename();
      if (limits::IsCallsLevelName(name, pid_namespace_)) {
        names.push_back(name);
      }
    }
    return names;
  }
  std::string CallsLevel() const {
    return parent_ + "/" + limits::CallsLevelName(pid_namespace_, daemon_.state());
  }

  Strings AllLevels() const {
    Strings names;
    for (const std::string& calls : CallsLevels()) {
      std::error_code gone;  // another daemon's may end meanwhile
      for (std::filesystem::directory_iterator one(parent_ + "/" + calls, gone), end;
           !gone && one != end; one.increment(gone)) {
        const std::string name = one->path().filename();
        if (limits::IsTenantLevelName(name, pid_namespace_)) {
          names.push_back(name);
        }
      }
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  // Those of this daemon.
  Strings Levels() const {
    const Strings now = AllLevels();
    Strings fresh;
    std::set_difference(now.begin(), now.end(), before_.begin(), before_.end(),
                        std::back_inserter(fresh));
    return fresh;
  }
  // A call may run, by its record, before its boundary has a cgroup, and end before that is gone.
  bool ThereAre(size_t count) const {
    return WaitUntil([&] { return Levels().size() == count; }, Seconds(20));
  }

  // No two calls are the same: what was cancelled may not be tried again at once.
  static Json CallOf(const std::string& tool) {
    return {{"tool", tool}, {"args", {{"word", NewToken()}}}};
  }
  // Calls that run until they are cancelled.
  Strings Burn(const std::string& key, size_t count) const {
    const size_t running = daemon_.Runners().size();
    Strings ids;
    for (size_t i = 0; i < count; ++i) {
      const HttpAnswer began = daemon_.Call(key, CallOf("burn"), kAsync);
      EXPECT_EQ(began.status, 202) << began.text;
      ids.push_back(began.At("call_id"));
    }
    EXPECT_TRUE(WaitUntil(
        [&] {
          return daemon_.Runners().size() >= running + count &&
                 std::all_of(ids.begin(), ids.end(), [&](const std::string& id) {
                   return daemon_.Ask("GET", "/v1/calls/" + id, key).At("state") == "running";
                 });
        },
        Seconds(60)));
    return ids;
  }
  void Cancel(const std::string& key, const Strings& ids) const {
    for (const std::string& id : ids) {
      (void)daemon_.Ask("POST", "/v1/calls/" + id + "/cancel", key);
    }
    EXPECT_TRUE(WaitUntil([&] { return daemon_.Runners().empty(); }, Seconds(60)));
  }
  static std::string Out(const HttpAnswer& answer) {
    return answer.body.is_object() && answer.body.contains("result") &&
                   answer.body["result"].is_object()
               ? answer.body["result"].value("stdout", "")
               : "";
  }
  // Which part of one processor a call with a single process gets.
  double Measure(const std::string& key) const {
    const std::string id = daemon_.Call(key, CallOf("measure"), kAsync).At("call_id");
    HttpAnswer answer;
    EXPECT_TRUE(WaitUntil(
        [&] {
          ::usleep(100'000);
          answer = daemon_.Ask("GET", "/v1/calls/" + id, key);
          return !answer.Outcome().empty();
        },
        Seconds(60)));
    double begin = 0, end = 0, user = 0, system = 0;
    long user_minutes = 0, system_minutes = 0;
    EXPECT_EQ(std::sscanf(Out(answer).c_str(), "%lf %lf %ldm%lfs %ldm%lfs", &begin, &end,
                          &user_minutes, &user, &system_minutes, &system),
              6)
        << answer.text;
    const double cpu = 60.0 * static_cast<double>(user_minutes + system_minutes) + user + system;
    return end > begin ? cpu / (end - begin) : 0;
  }

  Daemon daemon_;
  std::string parent_, one_, other_;
  uint64_t pid_namespace_ = 0;
  Strings before_;
};

TEST_F(ProcessorShares, ATenantThatBurnsCpuTimeLeavesAnotherItsShare) {
  const double alone = Measure(other_);
  const Strings ids = Burn(one_, 16);
  EXPECT_TRUE(ThereAre(1));
  const double among_its_own = Measure(one_);
  const double of_another = Measure(other_);
  Cancel(one_, ids);
  std::printf("of one processor: %.3f alone, %.3f among its own, %.3f of another tenant\n", alone,
              among_its_own, of_another);
  // It is due one half of what the rest of the host leaves it, and the test allows for a third of that. Among its own
  // it gets a seventeenth of all processors at most, as one of 17 boundaries.
  EXPECT_GT(of_another, alone / 2 / 3);
  EXPECT_GT(of_another, 2 * among_its_own) << "the control";
  EXPECT_TRUE(ThereAre(0));
}

TEST_F(ProcessorShares, ABoundarySeesItsOwnCgroupAndNotTheLevel) {
  const HttpAnswer answer = daemon_.Call(one_, CallOf("short"));
  EXPECT_EQ(answer.Outcome(), "success") << answer.text;
  EXPECT_TRUE(Contains(Out(answer), "memory.")) << answer.text;
  EXPECT_TRUE(Contains(Out(answer), ":/\n")) << answer.text;
  EXPECT_FALSE(Contains(Out(answer), "coffer-")) << answer.text;
  EXPECT_TRUE(ThereAre(0));
}

TEST_F(ProcessorShares, TheLastCallOfATenantRemovesIt) {
  EXPECT_FALSE(std::filesystem::exists(CallsLevel()));
  const Strings first = Burn(one_, 1);
  const Strings others = Burn(other_, 1);
  EXPECT_TRUE(ThereAre(2)) << "one for each tenant";
  EXPECT_TRUE(std::filesystem::exists(CallsLevel())) << "around both";
  EXPECT_EQ(daemon_.Call(one_, CallOf("short")).Outcome(), "success");
  EXPECT_EQ(Levels().size(), 2U) << "a call that ended was not the last";
  (void)daemon_.Ask("POST", "/v1/calls/" + first[0] + "/cancel", one_);
  EXPECT_TRUE(ThereAre(1));
  Cancel(other_, others);
  EXPECT_TRUE(ThereAre(0));
  EXPECT_TRUE(WaitUntil([&] { return !std::filesystem::exists(CallsLevel()); }));
}

TEST_F(ProcessorShares, WhatAKilledRunnerLeavesGoesWithTheNextLastOne) {
  const Strings ids = Burn(one_, 1);
  ASSERT_TRUE(ThereAre(1));
  const Strings level = Levels();
  const std::vector<pid_t> runners = daemon_.Runners();
  ASSERT_EQ(runners.size(), 1U);
  ASSERT_EQ(::kill(runners[0], SIGKILL), 0);
  EXPECT_TRUE(WaitUntil([&] { return daemon_.Runners().empty(); }));
  EXPECT_EQ(Levels(), level) << "the control: nothing removes it meanwhile";
  EXPECT_TRUE(WaitUntil(
      [&] {
        EXPECT_EQ(daemon_.Call(one_, CallOf("short")).Outcome(), "success");
        return Levels().empty();
      },
      Seconds(20)));
}

TEST_F(ProcessorShares, WhatAKilledDaemonLeavesGoesWithItsNextStart) {
  (void)Burn(one_, 2);
  (void)Burn(other_, 1);
  ASSERT_TRUE(ThereAre(2));
  ASSERT_EQ(::kill(daemon_.monitor(), SIGKILL), 0);
  ASSERT_TRUE(daemon_.Gone(Seconds(30)));
  EXPECT_EQ(Levels().size(), 2U) << "the control: killed runners leave them";
  ASSERT_TRUE(daemon_.Start());
  EXPECT_TRUE(ThereAre(0));
  EXPECT_FALSE(std::filesystem::exists(CallsLevel()));
  EXPECT_EQ(daemon_.Call(one_, CallOf("short")).Outcome(), "success");
  EXPECT_TRUE(ThereAre(0));
}

TEST_F(ProcessorShares, CallsThatBeginWhileOthersEndDoNotFail) {
  constexpr int kClients = 2, kCalls = 12;  // of each tenant
  std::atomic<int> succeeded = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < 2 * kClients; ++i) {
    clients.emplace_back([&, i] {
      for (int call = 0; call < kCalls; ++call) {
        const HttpAnswer answer = daemon_.Call(i % 2 == 0 ? one_ : other_, CallOf("short"));
        EXPECT_EQ(answer.Outcome(), "success") << answer.text;
        succeeded += answer.Outcome() == "success" ? 1 : 0;
      }
    });
  }
  for (std::thread& client : clients) {
    client.join();
  }
  EXPECT_EQ(succeeded, 2 * kClients * kCalls);
  EXPECT_TRUE(ThereAre(0));
}

}  // namespace
}  // namespace coffer::test
