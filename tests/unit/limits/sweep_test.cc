// SPDX-License-Identifier: Apache-2.0
#include "limits/sweep.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/sys.h"
#include "limits/cgroup/name.h"
#include "test_support.h"

namespace coffer::limits {
namespace {

pid_t DeadPid() {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::_exit(0);
  }
  WaitFor(pid);
  return pid;
}

std::string NameOf(pid_t pid, uint64_t pid_namespace, Nanos made = BootTime()) {
  return fmt::format("coffer-{}-{}-{:x}-0badcafe", pid, pid_namespace, made.count() / 1'000'000);
}

class SweepTest : public ::testing::Test {
 protected:
  void SetUp() override {
    host_ = *ProbeCgroups();
    if (!host_.Usable(Controller::kMemory) || !host_.Usable(Controller::kPids)) {
      GTEST_SKIP() << "this host lets us make no cgroups: "
                   << host_.at(Controller::kMemory).why_not;
    }
    // Names of a pid namespace that no other process has: every sweep of this host but the test's leaves them alone.
    host_.pid_namespace = 1'000'000'000'000 + static_cast<uint64_t>(::getpid());
    // The hierarchy that the sweep goes by is the first.
    dirs_ = {host_.at(Controller::kMemory).dir};
    if (host_.at(Controller::kPids).dir != dirs_[0]) {
      dirs_.push_back(host_.at(Controller::kPids).dir);
    }
  }
  void TearDown() override {
    for (const std::string& dir : dirs_) {
      for (const std::string& name : made_) {
        ::rmdir((dir + "/" + name).c_str());
      }
    }
  }
  void Make(const std::string& name) {
    made_.push_back(name);
    for (const std::string& dir : dirs_) {
      ASSERT_EQ(::mkdir((dir + "/" + name).c_str(), 0755), 0) << dir;
    }
  }
  size_t Count(const std::string& name) const {
    size_t count = 0;
    for (const std::string& dir : dirs_) {
      count += std::filesystem::exists(dir + "/" + name) ? 1 : 0;
    }
    return count;
  }

  CgroupHost host_;
  std::vector<std::string> dirs_;
  std::vector<std::string> made_;
};

TEST_F(SweepTest, RemovesWhatADeadSupervisorLeft) {
  const std::string name = NameOf(DeadPid(), host_.pid_namespace);
  Make(name);
  const SweepReport report = SweepCgroups(host_);
  EXPECT_GE(report.removed, dirs_.size());
  EXPECT_EQ(Count(name), 0U);
}

TEST_F(SweepTest, AZombieOwnsNothing) {
  const pid_t zombie = ::fork();
  if (zombie == 0) {
    ::_exit(0);
  }
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(zombie), &ended, WEXITED | WNOWAIT), 0);
  ASSERT_EQ(::kill(zombie, 0), 0) << "the control: its number is still taken";
  const std::string name = NameOf(zombie, host_.pid_namespace);
  Make(name);
  const SweepReport report = SweepCgroups(host_);
  EXPECT_EQ(Count(name), 0U) << (report.problems.empty() ? "" : report.problems[0]);
  ::waitpid(zombie, nullptr, 0);
}

TEST_F(SweepTest, AProcessThatBeganLaterOwnsNothing) {
  // Our own number, as if it had belonged to somebody else before us; and the control, which we may have made.
  const std::string before = NameOf(::getpid(), host_.pid_namespace, std::chrono::milliseconds(1));
  const std::string ours = NameOf(::getpid(), host_.pid_namespace);
  Make(before);
  Make(ours);
  const SweepReport report = SweepCgroups(host_);
  EXPECT_EQ(Count(before), 0U) << (report.problems.empty() ? "" : report.problems[0]);
  EXPECT_EQ(Count(ours), dirs_.size());
}

TEST_F(SweepTest, KillsWhatIsStillInside) {
  const std::string name = NameOf(DeadPid(), host_.pid_namespace);
  Make(name);
  Result<sys::Pipe> ready = sys::MakePipe();
  const std::string join = dirs_[0] + "/" + name + "/cgroup.procs";
  const pid_t stray = ::fork();
  if (stray == 0) {
    const int fd = ::open(join.c_str(), O_WRONLY);
    if (::write(fd, "0", 1) != 1) {
      ::_exit(1);
    }
    (void)!::write(ready->write_end.get(), "x", 1);
    ::pause();
    ::_exit(0);
  }
  ASSERT_TRUE(Ready(ready->read_end.get()));
  const SweepReport report = SweepCgroups(host_);
  const int status = WaitFor(stray);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  EXPECT_EQ(Count(name), 0U) << (report.problems.empty() ? "" : report.problems[0]);
}

TEST_F(SweepTest, NeverTouchesTheLivingTheForeignAndTheUnknown) {
  const std::string ours = NameOf(::getpid(), host_.pid_namespace);
  const std::string foreign = NameOf(DeadPid(), host_.pid_namespace + 1);
  const std::string unknown = "coffer-of-somebody-else";
  Make(ours);
  Make(foreign);
  Make(unknown);
  const SweepReport report = SweepCgroups(host_);
  EXPECT_GE(report.alive, 2U);
  EXPECT_EQ(Count(ours), dirs_.size());
  EXPECT_EQ(Count(foreign), dirs_.size());
  EXPECT_EQ(Count(unknown), dirs_.size());
}

TEST_F(SweepTest, EverywhereAlsoLooksBelowOtherCgroups) {
  const std::string name = NameOf(DeadPid(), host_.pid_namespace);
  Make("coffer-test-nest");
  const std::string nested = dirs_[0] + "/coffer-test-nest/" + name;
  ASSERT_EQ(::mkdir(nested.c_str(), 0755), 0);
  // Only our own part of the hierarchy: the rest of this host is not the test's.
  CgroupHost here;
  here.pid_namespace = host_.pid_namespace;
  here.at(Controller::kMemory) = host_.at(Controller::kMemory);
  here.at(Controller::kMemory).mount_point = dirs_[0];
  EXPECT_EQ(SweepCgroups(here).removed, 0U) << "the cheap sweep does not look there";
  const SweepReport report = SweepCgroups(here, SweepDepth::kEverywhere);
  EXPECT_EQ(report.removed, 1U);
  EXPECT_FALSE(std::filesystem::exists(nested));
}

TEST_F(SweepTest, LooksPastWhatItKnows) {
  const std::string ours = NameOf(::getpid(), host_.pid_namespace);
  const std::string left = NameOf(DeadPid(), host_.pid_namespace);
  Make(ours);
  Make(left);
  SweepCgroups(host_, SweepDepth::kHere, 1);
  EXPECT_EQ(Count(left), 0U) << "there was one directory more than our own";
  EXPECT_EQ(Count(ours), dirs_.size());
}

// Levels of tenants, whose boundaries lie one directory deeper in the hierarchies that have them.
class SweepTenantLevels : public SweepTest {
 protected:
  void SetUp() override {
    SweepTest::SetUp();
    level_ = TenantLevelName(host_.pid_namespace, "/of-a-test", 1);
  }
  // TearDown removes in the order of Make: what is deeper has to come first.
  void MakeLevelWith(const std::string& name) {
    for (const std::string& dir : dirs_) {
      ASSERT_EQ(::mkdir((dir + "/" + level_).c_str(), 0711), 0) << dir;
    }
    if (!name.empty()) {
      Make(level_ + "/" + name);
    }
    made_.push_back(level_);
  }
  std::string level_;
};

TEST_F(SweepTenantLevels, WhatADeadSupervisorLeftInOneGoesAndThenTheLevel) {
  const std::string name = NameOf(DeadPid(), host_.pid_namespace);
  MakeLevelWith(name);
  const SweepReport report = SweepCgroups(host_);
  EXPECT_EQ(Count(level_ + "/" + name), 0U) << (report.problems.empty() ? "" : report.problems[0]);
  EXPECT_FALSE(std::filesystem::exists(dirs_[0] + "/" + level_));
}

TEST_F(SweepTenantLevels, WhatADeadSupervisorLeftBelowTheLevelOfAllCallsGoesToo) {
  const std::string calls = CallsLevelName(host_.pid_namespace, "/of-a-test");
  for (const std::string& dir : dirs_) {
    ASSERT_EQ(::mkdir((dir + "/" + calls).c_str(), 0711), 0) << dir;
  }
  level_ = calls + "/" + level_;
  const std::string name = NameOf(DeadPid(), host_.pid_namespace);
  MakeLevelWith(name);
  made_.push_back(calls);
  EXPECT_EQ(Count(level_ + "/" + name), dirs_.size()) << "the control";
  const SweepReport report = SweepCgroups(host_);
  EXPECT_EQ(Count(level_ + "/" + name), 0U) << (report.problems.empty() ? "" : report.problems[0]);
  EXPECT_FALSE(std::filesystem::exists(dirs_[0] + "/" + calls));
}

TEST_F(SweepTenantLevels, WhatALivingSupervisorHasThereStays) {
  const std::string ours = NameOf(::getpid(), host_.pid_namespace);
  MakeLevelWith(ours);
  EXPECT_GE(SweepCgroups(host_).alive, 1U);
  EXPECT_EQ(Count(level_ + "/" + ours), dirs_.size());
}

TEST_F(SweepTenantLevels, ALevelInUseStaysThoughItIsEmpty) {
  MakeLevelWith("");
  const Result<UniqueFd> use = sys::Open(dirs_[0] + "/" + level_, O_RDONLY | O_DIRECTORY);
  ASSERT_TRUE(use.ok());
  ASSERT_EQ(::flock(use->get(), LOCK_SH), 0);
  SweepCgroups(host_);
  EXPECT_TRUE(std::filesystem::exists(dirs_[0] + "/" + level_));
  ASSERT_EQ(::flock(use->get(), LOCK_UN), 0);
  SweepCgroups(host_);
  EXPECT_FALSE(std::filesystem::exists(dirs_[0] + "/" + level_)) << "the control";
}

TEST_F(SweepTenantLevels, ThoseOfAnotherPidNamespaceStay) {
  level_ = TenantLevelName(host_.pid_namespace + 1, "/of-a-test", 1);
  const std::string name = NameOf(DeadPid(), host_.pid_namespace);
  MakeLevelWith(name);
  SweepCgroups(host_);
  EXPECT_EQ(Count(level_ + "/" + name), dirs_.size());
}

// v1 with cpu,cpuacct: one directory of a boundary lies in a level, the first one does not.
TEST_F(SweepTenantLevels, ADirectoryInALevelGoesWithTheOneThatIsFoundOutsideOfIt) {
  if (dirs_.size() < 2) {
    GTEST_SKIP() << "memory and pids are one hierarchy here";
  }
  const std::string name = NameOf(DeadPid(), host_.pid_namespace);
  ASSERT_EQ(::mkdir((dirs_[0] + "/" + name).c_str(), 0755), 0);
  ASSERT_EQ(::mkdir((dirs_[1] + "/" + level_).c_str(), 0711), 0);
  ASSERT_EQ(::mkdir((dirs_[1] + "/" + level_ + "/" + name).c_str(), 0755), 0);
  made_ = {level_ + "/" + name, name, level_};
  const SweepReport report = SweepCgroups(host_);
  EXPECT_EQ(report.removed, 2U);
  EXPECT_FALSE(std::filesystem::exists(dirs_[0] + "/" + name));
  EXPECT_FALSE(std::filesystem::exists(dirs_[1] + "/" + level_ + "/" + name));
}

TEST(Sweep, WithoutCgroupsThereIsNothingToDo) {
  const SweepReport report = SweepCgroups(CgroupHost());
  EXPECT_EQ(report.removed, 0U);
  EXPECT_TRUE(report.problems.empty());
}

}  // namespace
}  // namespace coffer::limits
