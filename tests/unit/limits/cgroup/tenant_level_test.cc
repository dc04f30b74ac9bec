// SPDX-License-Identifier: Apache-2.0
//
// Where a tenant's level lies on recorded hosts, who may remove it, and what it is on the host that the test runs on.
#include "limits/cgroup/tenant_level.h"

#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/ptrace.h>
#include <sys/stat.h>

#include <filesystem>
#include <functional>

#include "base/sys.h"
#include "limits/cgroup/name.h"
#include "limits/cgroup/probe.h"
#include "tests/unit/limits/fake_files.h"
#include "tests/unit/limits/test_support.h"

namespace coffer::limits {
namespace {

// The controllers that every call needs in /, and `more` lines of the two files. All of it may be written.
FakeFiles V1Host(const std::string& memberships, const std::string& mounts) {
  FakeFiles files;
  files.texts["/proc/self/cgroup"] = "9:memory:/\n8:pids:/\n" + memberships;
  files.texts["/proc/self/mountinfo"] =
      "33 30 0:4 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
      "34 30 0:5 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n" +
      mounts;
  files.writable = {"/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids"};
  return files;
}

FakeFiles CpuApart() {
  FakeFiles files = V1Host("2:cpuacct:/\n1:cpu:/own\n",
                           "35 30 0:6 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n"
                           "36 30 0:7 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n");
  files.writable.insert({"/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/cpu/own"});
  return files;
}

FakeFiles CpuTogether() {
  FakeFiles files =
      V1Host("2:cpu,cpuacct:/\n",
             "35 30 0:6 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n");
  files.writable.insert("/sys/fs/cgroup/cpu,cpuacct");
  return files;
}

FakeFiles V2Slice(const std::string& distributed) {
  FakeFiles files;
  files.texts["/proc/self/cgroup"] = "0::/system.slice/coffer.service\n";
  files.texts["/proc/self/mountinfo"] =
      "30 20 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";
  files.AddV2("/sys/fs/cgroup/system.slice", "cpu io memory pids\n", distributed);
  files.AddV2("/sys/fs/cgroup/system.slice/coffer.service", distributed, "", "7\n8\n");
  files.Allow("/sys/fs/cgroup/system.slice");
  files.Allow("/sys/fs/cgroup/system.slice/coffer.service");
  return files;
}

std::string ParentOf(const FakeFiles& files, ProbeDepth depth = ProbeDepth::kTenantCall) {
  return TenantLevelParent(ProbeCgroupsWith(files, depth));
}

TEST(TenantLevelParent, IsOurOwnCgroupWhereCpuIsMountedByItself) {
  EXPECT_EQ(ParentOf(CpuApart()), "/sys/fs/cgroup/cpu/own");
  EXPECT_EQ(ParentOf(CpuApart(), ProbeDepth::kAll), "/sys/fs/cgroup/cpu/own");
}

TEST(TenantLevelParent, IsOurOwnCgroupWhereCpuIsMountedWithCpuacct) {
  EXPECT_EQ(ParentOf(CpuTogether()), "/sys/fs/cgroup/cpu,cpuacct");
  EXPECT_EQ(ParentOf(CpuTogether(), ProbeDepth::kAll), "/sys/fs/cgroup/cpu,cpuacct");
}

TEST(TenantLevelParent, IsNotThereForACallOfNoTenant) {
  EXPECT_EQ(ParentOf(CpuApart(), ProbeDepth::kCall), "");
  EXPECT_EQ(ParentOf(CpuTogether(), ProbeDepth::kCall), "");
  EXPECT_EQ(ParentOf(V2Slice("cpu memory pids\n"), ProbeDepth::kCall), "");
}

TEST(TenantLevelParent, IsNotThereWhereCpuIsNotOursToWriteOrNotMounted) {
  FakeFiles files = CpuApart();
  files.writable.erase("/sys/fs/cgroup/cpu/own");
  EXPECT_EQ(ParentOf(files), "");
  EXPECT_TRUE(ProbeCgroupsWith(files, ProbeDepth::kTenantCall).Usable(Controller::kMemory))
      << "the control: the caps are as before";
  EXPECT_EQ(ParentOf(V1Host("", "")), "");
}

TEST(TenantLevelParent, IsFoundWhereOnlyCpuIsMountedInAnUnusualPlace) {
  FakeFiles files = CpuApart();
  std::string& mounts = files.texts["/proc/self/mountinfo"];
  mounts.replace(mounts.find("/sys/fs/cgroup/cpu rw"), 18, "/cpu-elsewhere");
  files.writable.erase("/sys/fs/cgroup/cpu/own");
  files.writable.insert("/cpu-elsewhere/own");
  EXPECT_EQ(ParentOf(files), "/cpu-elsewhere/own");
}

TEST(TenantLevelParent, OfV2IsTheParentOfTheBoundariesIfThatDistributesCpu) {
  EXPECT_EQ(ParentOf(V2Slice("cpu memory pids\n")), "/sys/fs/cgroup/system.slice");
  EXPECT_EQ(ParentOf(V2Slice("cpu memory pids\n"), ProbeDepth::kAll),
            "/sys/fs/cgroup/system.slice");
  // The parent offers `cpu`, and whether it distributes it is not ours to decide.
  const CgroupHost host = ProbeCgroupsWith(V2Slice("memory pids\n"), ProbeDepth::kTenantCall);
  EXPECT_EQ(TenantLevelParent(host), "");
  EXPECT_EQ(host.v2_dir, "/sys/fs/cgroup/system.slice") << "the control";
  EXPECT_EQ(host.v2_enable.find("cpu"), std::string::npos);
}

TEST(TenantLevelName, HasNoTextOfATenantAndIsNoBoundarys) {
  const std::string name = TenantLevelName(4026531836, "/var/lib/coffer", 17);
  EXPECT_TRUE(IsTenantLevelName(name, 4026531836)) << name;
  EXPECT_FALSE(IsTenantLevelName(name, 4026531837)) << "of another pid namespace";
  EXPECT_EQ(FindOwner(name), std::nullopt);
  EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string::npos);
  EXPECT_TRUE(name.ends_with("-17")) << name;
  EXPECT_NE(name, TenantLevelName(4026531836, "/var/lib/other", 17)) << "of another daemon";
  for (const std::string& other :
       {name + "0x", name + "-", name.substr(0, name.size() - 3), "x" + name,
        std::string("coffer-tenant-1"), *NewCgroupName(4026531836)}) {
    EXPECT_FALSE(IsTenantLevelName(other, 4026531836)) << other;
  }
}

// Levels in a directory that stands for a hierarchy: their locks and their removal need no cgroup file system.
class TenantLevelLocks : public ::testing::Test {
 protected:
  TenantLevelLocks() {
    ControllerPlace& cpu = host_.at(Controller::kCpu);
    cpu.version = CgroupVersion::kV1;
    cpu.usable = true;
    cpu.dir = dir_.path();
  }
  TenantLevel EnterLevel() {
    Result<TenantLevel> level = TenantLevel::Enter(host_, name_, false);
    EXPECT_TRUE(level.ok()) << (level.ok() ? "" : level.error().message);
    return level.ok() ? std::move(level).value() : TenantLevel();
  }
  bool IsThere() const { return std::filesystem::exists(dir_ / name_); }
  // A child that has entered the level, and stays until it is killed.
  pid_t StartRunner() {
    Result<sys::Pipe> ready = sys::MakePipe();
    const pid_t pid = ::fork();
    if (pid == 0) {
      const TenantLevel level = EnterLevel();
      (void)!::write(ready->write_end.get(), "x", level.path().empty() ? 0 : 1);
      ::pause();
      ::_exit(0);
    }
    EXPECT_TRUE(Ready(ready->read_end.get()));
    return pid;
  }

  TempDir dir_;
  CgroupHost host_;
  const std::string name_ = TenantLevelName(1, "/state", 1);
};

TEST(CallsLevelName, IsNoTenantsAndNoBoundarys) {
  const std::string name = CallsLevelName(4026531836, "/var/lib/coffer");
  EXPECT_TRUE(IsCallsLevelName(name, 4026531836)) << name;
  EXPECT_FALSE(IsCallsLevelName(name, 4026531837)) << "of another pid namespace";
  EXPECT_FALSE(IsTenantLevelName(name, 4026531836));
  EXPECT_FALSE(IsCallsLevelName(TenantLevelName(4026531836, "/var/lib/coffer", 1), 4026531836));
  EXPECT_EQ(FindOwner(name), std::nullopt);
  for (const std::string& other : {name + "0", name + "-1", name.substr(0, name.size() - 1)}) {
    EXPECT_FALSE(IsCallsLevelName(other, 4026531836)) << other;
  }
}

TEST_F(TenantLevelLocks, TheLastOneRemovesIt) {
  TenantLevel first = EnterLevel();
  ASSERT_TRUE(IsThere());
  TenantLevel second = EnterLevel();
  EXPECT_EQ(first.path(), second.path());
  first.Leave();
  EXPECT_TRUE(IsThere()) << "another runner has it";
  EXPECT_FALSE(RemoveUnusedLevel(dir_ / name_)) << "nor does the sweep take it away";
  TenantLevel moved = std::move(second);
  EXPECT_TRUE(IsThere());
  moved.Leave();
  EXPECT_FALSE(IsThere());
  moved.Leave();
}

TEST_F(TenantLevelLocks, NoOtherUserCanOpenIt) {
  const mode_t before = ::umask(0);
  for (const mode_t mask : {0, 077}) {
    ::umask(mask);
    const TenantLevel level = EnterLevel();
    struct stat info{};
    EXPECT_EQ(::stat(level.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0711U) << "a boundary finds its own cgroup below it";
  }
  ::umask(before);
}

TEST_F(TenantLevelLocks, AKilledRunnerLeavesItToTheNextLastOneAndToTheSweep) {
  for (const bool sweep : {true, false}) {
    const pid_t runner = StartRunner();
    EXPECT_FALSE(RemoveUnusedLevel(dir_ / name_)) << "it lives";
    ::kill(runner, SIGKILL);
    WaitFor(runner);
    EXPECT_TRUE(IsThere()) << "the control: nothing has removed it";
    if (sweep) {
      EXPECT_TRUE(RemoveUnusedLevel(dir_ / name_));
    } else {
      EnterLevel().Leave();
    }
    EXPECT_FALSE(IsThere());
  }
}

// A child of a runner may still have the descriptor.
TEST_F(TenantLevelLocks, ACopyInAChildNeitherKeepsNorLocksIt) {
  std::vector<pid_t> children;
  const auto copy = [&] {
    children.push_back(::fork());
    if (children.back() == 0) {
      ::pause();
      ::_exit(0);
    }
  };
  TenantLevel first = EnterLevel();
  TenantLevel second = EnterLevel();
  copy();
  first.Leave();
  EXPECT_TRUE(IsThere());
  second.Leave();
  EXPECT_FALSE(IsThere());
  TenantLevel third = EnterLevel();
  const std::string left = third.path() + "/left";
  ASSERT_EQ(::mkdir(left.c_str(), 0755), 0);
  copy();
  third.Leave();
  EXPECT_TRUE(IsThere()) << "it is not empty";
  EXPECT_FALSE(RemoveUnusedLevel(dir_ / name_));
  EXPECT_EQ(EnterLevel().path(), dir_ / name_) << "and others may enter it";
  ASSERT_EQ(::rmdir(left.c_str()), 0);
  EXPECT_TRUE(RemoveUnusedLevel(dir_ / name_));
  for (const pid_t pid : children) {
    ::kill(pid, SIGKILL);
    WaitFor(pid);
  }
}

// Those that begin while others end: each has a level that exists until it has left it.
TEST_F(TenantLevelLocks, EndsAndBeginningsMeet) {
  constexpr int kRunners = 4, kRounds = 200;
  // Returns how often the level was missing while its user made something in it.
  const auto failures = [&](const std::function<bool()>& once) {
    std::vector<pid_t> pids;
    for (int i = 0; i < kRunners; ++i) {
      pids.push_back(::fork());
      if (pids.back() == 0) {
        int failed = 0;
        for (int round = 0; round < kRounds; ++round) {
          failed += once() ? 0 : 1;
        }
        ::_exit(std::min(failed, 100));
      }
    }
    int all = 0;
    for (const pid_t pid : pids) {
      const int status = WaitFor(pid);
      all += WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
    }
    return all;
  };
  const auto use = [](const std::string& level) {
    const std::string own = level + "/" + std::to_string(::getpid());
    ::usleep(100);  // others end meanwhile
    const bool made = ::mkdir(own.c_str(), 0755) == 0;
    return made && ::rmdir(own.c_str()) == 0;
  };
  EXPECT_EQ(failures([&] {
              TenantLevel level = EnterLevel();
              return use(level.path());
            }),
            0);
  EXPECT_FALSE(IsThere());
  EXPECT_GT(failures([&] {
              const std::string path = dir_ / "without-locks";
              (void)::mkdir(path.c_str(), 0755);
              const bool used = use(path);
              (void)::rmdir(path.c_str());
              return used;
            }),
            0)
      << "the control: without the locks some meet";
}

// Runs `body` in a child, and `meanwhile` once while the child is about to call flock(2). Returns the wait status.
int AtItsFirstLock(const std::function<int()>& body, const std::function<void()>& meanwhile) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    ::raise(SIGSTOP);
    ::_exit(body());
  }
  bool met = false;
  int status = WaitFor(pid, WUNTRACED);
  EXPECT_EQ(::ptrace(PTRACE_SETOPTIONS, pid, nullptr, PTRACE_O_TRACESYSGOOD), 0);
  while (WIFSTOPPED(status)) {
    __ptrace_syscall_info info{};
    (void)::ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info);
    if (!met && info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr == SYS_flock) {
      met = true;
      meanwhile();
    }
    EXPECT_EQ(::ptrace(PTRACE_SYSCALL, pid, nullptr, nullptr), 0);
    status = WaitFor(pid);
  }
  EXPECT_TRUE(met) << "the child locked nothing";
  return status;
}

TEST_F(TenantLevelLocks, ADirectoryThatGoesBeforeItIsLockedIsMadeAgain) {
  const std::string path = dir_ / name_;
  const auto enter = [&] {
    const TenantLevel level = EnterLevel();
    return std::filesystem::exists(path) ? 0 : 1;
  };
  EXPECT_EQ(AtItsFirstLock(enter, [&] { EXPECT_EQ(::rmdir(path.c_str()), 0); }), 0);
  EXPECT_FALSE(IsThere()) << "and is removed at the end";
}

TEST_F(TenantLevelLocks, ADirectoryThatIsMadeBeforeTheSweepHasLockedTheOldOneStays) {
  const std::string path = dir_ / name_;
  for (const bool replaced : {true, false}) {
    EnterLevel();
    ASSERT_EQ(::mkdir(path.c_str(), 0711), 0);
    TenantLevel level;
    const auto sweep = [&] { return RemoveUnusedLevel(path) ? 1 : 0; };
    (void)AtItsFirstLock(sweep, [&] {
      if (replaced) {
        EXPECT_EQ(::rmdir(path.c_str()), 0);
        level = EnterLevel();
      }
    });
    EXPECT_EQ(IsThere(), replaced) << "the control: one that was not replaced goes";
  }
}

TEST_F(TenantLevelLocks, WithCpusetThereIsNone) {
  dir_.Write("cpuset.cpus", "0-1\n");
  EXPECT_EQ(EnterLevel().path(), "");
  EXPECT_FALSE(IsThere());
}

TEST_F(TenantLevelLocks, WithoutAPlaceThereIsNone) {
  host_.at(Controller::kCpu).usable = false;
  EXPECT_EQ(EnterLevel().path(), "");
  EXPECT_EQ(EnterLevel().Below(host_).at(Controller::kCpu).dir, dir_.path());
}

TEST_F(TenantLevelLocks, OnV1OnlyTheHierarchyOfCpuGoesBelowIt) {
  host_.at(Controller::kCpuacct) = host_.at(Controller::kCpu);
  host_.at(Controller::kMemory) = host_.at(Controller::kCpu);
  host_.at(Controller::kMemory).dir = "/elsewhere";
  const TenantLevel level = EnterLevel();
  const CgroupHost below = level.Below(host_);
  EXPECT_EQ(below.at(Controller::kCpuacct).dir, dir_ / name_);
  EXPECT_EQ(below.at(Controller::kMemory).dir, "/elsewhere");
}

TEST_F(TenantLevelLocks, OnV2ItDistributesWhatBoundariesNeed) {
  for (const Controller controller :
       {Controller::kCpu, Controller::kMemory, Controller::kPids, Controller::kIo}) {
    ControllerPlace& place = host_.at(controller);
    place.version = CgroupVersion::kV2;
    place.usable = true;
    place.dir = dir_.path();
  }
  host_.v2_dir = dir_.path();
  EXPECT_EQ(EnterLevel().path(), "") << "its parent distributes no cpu";
  host_.v2_weighs = true;
  const TenantLevel level = EnterLevel();
  const CgroupHost below = level.Below(host_);
  EXPECT_EQ(below.v2_dir, dir_ / name_);
  EXPECT_EQ(below.v2_enable, "+cpu +memory +pids");
  EXPECT_TRUE(below.v2_enable_io);
  host_.at(Controller::kIo).usable = false;
  host_.at(Controller::kPids).version = CgroupVersion::kV1;
  EXPECT_EQ(level.Below(host_).v2_enable, "+cpu +memory");
  EXPECT_FALSE(level.Below(host_).v2_enable_io);
}

// Of the host that the test runs on.
class TenantLevelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    host_ = *ProbeCgroups();
    if (TenantLevelParent(host_).empty() || !host_.Usable(Controller::kMemory)) {
      GTEST_SKIP() << "this host has no place for levels: " << host_.at(Controller::kCpu).why_not;
    }
    path_ = TenantLevelParent(host_) + "/" + wants_.level;
  }
  size_t CountOfOurs() const {
    size_t count = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator(host_.at(Controller::kMemory).dir)) {
      const auto owner = FindOwner(entry.path().filename().string());
      count += owner && owner->pid == ::getpid() ? 1 : 0;
    }
    return count;
  }

  CgroupHost host_;
  // A pid namespace that no process has: no sweep but a test's own looks at it.
  CgroupWants wants_{.level = TenantLevelName(1'000'000'000'000 + static_cast<uint64_t>(::getpid()),
                                              "/of-a-test", 1)};
  std::string path_;
};

TEST_F(TenantLevelTest, BoundariesOfATenantShareItAndNothingRemains) {
  Result<Cgroup> first = Cgroup::Create(host_, {}, wants_);
  ASSERT_TRUE(first.ok()) << first.error().message;
  Result<Cgroup> second = Cgroup::Create(host_, {}, wants_);
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_EQ(first->layers(), Cgroup::Create(host_, {}, {})->layers()) << "as without a level";

  Result<sys::Pipe> hold = sys::MakePipe();
  Result<sys::Pipe> ready = sys::MakePipe();
  for (Cgroup* cgroup : {&*first, &*second}) {
    const pid_t child = SpawnInside(*cgroup, [&] {
      char byte = 0;
      ::close(hold->write_end.get());
      (void)!::write(ready->write_end.get(), "x", 1);
      return static_cast<int>(::read(hold->read_end.get(), &byte, 1));
    });
    ASSERT_TRUE(Ready(ready->read_end.get()));
    const std::string seen = *sys::ReadFile("/proc/" + std::to_string(child) + "/cgroup");
    EXPECT_NE(seen.find("/" + wants_.level), std::string::npos) << seen;
    EXPECT_NE(seen.find("/" + cgroup->name()), std::string::npos) << seen;
    EXPECT_EQ(seen.find("/" + wants_.level + "/" + cgroup->name()) != std::string::npos,
              cgroup->LiesInLevel())
        << seen;
  }
  hold->write_end.Reset();
  while (::wait(nullptr) > 0) {
  }
  EXPECT_TRUE(first->Remove().ok());
  EXPECT_TRUE(std::filesystem::exists(path_)) << "the other one has it";
  EXPECT_TRUE(second->Remove().ok());
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(TenantLevelTest, LevelsOfAllTenantsLieInOneThatWeighsAsTheProcessors) {
  const std::string parent = path_.substr(0, path_.rfind('/'));
  const uint64_t space = 1'000'000'000'000 + static_cast<uint64_t>(::getpid());
  CgroupWants one = wants_;
  one.calls_level = CallsLevelName(space, "/of-a-test");
  CgroupWants other = one;
  other.level = TenantLevelName(space, "/of-a-test", 2);
  const std::string calls = parent + "/" + one.calls_level;
  Result<Cgroup> first = Cgroup::Create(host_, {}, one);
  ASSERT_TRUE(first.ok()) << first.error().message;
  Result<Cgroup> second = Cgroup::Create(host_, {}, other);
  ASSERT_TRUE(second.ok()) << second.error().message;
  for (const std::string& level : {one.level, other.level}) {
    EXPECT_TRUE(std::filesystem::exists(calls + "/" + level));
    EXPECT_FALSE(std::filesystem::exists(parent + "/" + level)) << "beside it";
  }
  EXPECT_EQ(first->layers(), Cgroup::Create(host_, {}, {})->layers()) << "as without levels";
  const auto weight = [](const std::string& dir, const char* name) {
    const Result<std::string> text = sys::ReadFile(dir + "/" + name);
    return text.ok() ? std::atol(text->c_str()) : 0;
  };
  if (host_.at(Controller::kCpu).version == CgroupVersion::kV1) {
    EXPECT_EQ(weight(calls, "cpu.shares"), 1024 * ::sysconf(_SC_NPROCESSORS_ONLN));
    EXPECT_EQ(weight(calls + "/" + one.level, "cpu.shares"), 1024) << "tenants weigh the same";
  } else {
    EXPECT_EQ(weight(calls, "cpu.weight"), 100);
    EXPECT_EQ(weight(calls + "/" + one.level, "cpu.weight"), 100);
  }
  EXPECT_TRUE(first->Remove().ok());
  EXPECT_FALSE(std::filesystem::exists(calls + "/" + one.level));
  EXPECT_TRUE(std::filesystem::exists(calls + "/" + other.level)) << "another tenant has a call";
  EXPECT_TRUE(second->Remove().ok());
  EXPECT_FALSE(std::filesystem::exists(calls));
}

// v1 with cpu,cpuacct mounted together: the hierarchy of cpuacct stands for both here.
TEST_F(TenantLevelTest, InAHierarchyOfBothTheBoundarysOwnDirectoryLiesBelowIt) {
  CgroupHost host = host_;
  if (host.at(Controller::kCpuacct).version != CgroupVersion::kV1) {
    GTEST_SKIP() << "cpuacct is a hierarchy on cgroup v1 only";
  }
  host.at(Controller::kCpu) = host.at(Controller::kCpuacct);
  const std::string level = host.at(Controller::kCpuacct).dir + "/" + wants_.level;
  Result<Cgroup> cgroup = Cgroup::Create(host, {}, wants_);
  ASSERT_TRUE(cgroup.ok()) << cgroup.error().message;
  EXPECT_TRUE(cgroup->LiesInLevel());
  EXPECT_TRUE(std::filesystem::exists(level + "/" + cgroup->name()));
  EXPECT_TRUE(std::filesystem::exists(host.at(Controller::kMemory).dir + "/" + cgroup->name()));
  WaitFor(SpawnInside(*cgroup, [] {
    SpinCpu(20);
    return 0;
  }));
  EXPECT_GE(*cgroup->ReadCpu(), std::chrono::milliseconds(20)) << "it is what counts";
  EXPECT_TRUE(cgroup->Remove().ok());
  EXPECT_FALSE(std::filesystem::exists(level));
}

TEST_F(TenantLevelTest, TheCapsAreThoseOfTheBoundarysOwnCgroup) {
  policy::Limits caps;
  caps.memory = 32 << 20;
  caps.processes = 4;
  Result<Cgroup> cgroup = Cgroup::Create(host_, caps, wants_);
  ASSERT_TRUE(cgroup.ok()) << cgroup.error().message;
  const int status = WaitFor(SpawnInside(*cgroup, [] {
    int refused = 0;
    for (int i = 0; i < 8; ++i) {
      const pid_t pid = ::fork();
      refused += pid < 0 ? 1 : 0;
      if (pid == 0) {
        ::pause();
      }
    }
    return refused;
  }));
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 4);
  Result<Cgroup> other = Cgroup::Create(host_, caps, wants_);
  ASSERT_TRUE(other.ok()) << other.error().message;
  const int eater = WaitFor(SpawnInside(*other, [] {
    std::string memory(128 << 20, 'x');
    return memory[memory.size() / 2] == 'x' ? 0 : 1;
  }));
  EXPECT_TRUE(WIFSIGNALED(eater)) << eater;
  EXPECT_TRUE(other->OomHappened());
  EXPECT_TRUE(cgroup->Kill().ok());
}

// A call without its level would have more of the processors than its tenant's other calls: it is refused.
TEST_F(TenantLevelTest, IfItCannotBeMadeNoCgroupOfTheBoundaryIs) {
  TempDir dir;
  dir.Write(wants_.level, "not a directory");
  CgroupHost host = host_;
  ControllerPlace& cpu = host.at(Controller::kCpu);
  cpu.version = CgroupVersion::kV1;
  cpu.usable = true;
  cpu.dir = dir.path();
  const size_t before = CountOfOurs();
  const Result<Cgroup> refused = Cgroup::Create(host, {}, wants_);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, "limits.cgroup.tenant");
  EXPECT_EQ(CountOfOurs(), before);
  EXPECT_TRUE(Cgroup::Create(host, {}, {}).ok()) << "the control: the same without a level";
}

}  // namespace
}  // namespace coffer::limits
