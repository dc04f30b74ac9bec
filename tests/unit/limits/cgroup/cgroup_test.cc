// SPDX-License-Identifier: Apache-2.0
//
// Cgroups of the host the test runs on: v1 or v2, whatever it has. Where it lets us make none, the reason is printed.
#include "limits/cgroup/cgroup.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <string.h>
#include <sys/mman.h>

#include <filesystem>

#include "base/sys.h"
#include "limits/cgroup/mounts.h"
#include "limits/cgroup/name.h"
#include "tests/unit/limits/test_support.h"

namespace coffer::limits {
namespace {

using policy::Layer;

class CgroupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    host_ = *ProbeCgroups();
    for (const Controller controller :
         {Controller::kMemory, Controller::kPids, Controller::kCpuacct}) {
      if (!host_.Usable(controller)) {
        GTEST_SKIP() << "this host lets us make no " << ControllerName(controller)
                     << " cgroup: " << host_.at(controller).why_not;
      }
    }
  }

  Cgroup Make(const policy::Limits& caps, const CgroupWants& wants = {}) {
    Result<Cgroup> made = Cgroup::Create(host_, caps, wants);
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
    return made.ok() ? std::move(made).value() : Cgroup();
  }

  // Directories called `name` in any hierarchy we use.
  size_t CountDirs(const std::string& name) const {
    size_t count = 0;
    for (const ControllerPlace& place : host_.places) {
      count += std::filesystem::exists(place.dir + "/" + name) ? 1 : 0;
    }
    return count;
  }
  // Our own, of any name.
  size_t CountOurs() const {
    size_t count = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator(host_.at(Controller::kMemory).dir)) {
      const auto owner = FindOwner(entry.path().filename().string());
      count += owner && owner->pid == ::getpid() ? 1 : 0;
    }
    return count;
  }

  CgroupHost host_;
};

// Touches `bytes` of fresh memory, a page at a time.
int Touch(size_t bytes) {
  auto* memory = static_cast<char*>(
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  for (size_t at = 0; at < bytes; at += 4096) {
    memory[at] = 1;
  }
  return 0;
}

int FillMemfd(size_t bytes) {
  const int fd = ::memfd_create("fill", MFD_CLOEXEC);
  static char block[1 << 16];
  for (size_t done = 0; done < bytes; done += sizeof(block)) {
    if (::write(fd, block, sizeof(block)) < 0) {
      return errno;
    }
  }
  return 0;
}

TEST_F(CgroupTest, AChildJoinsAndNothingRemains) {
  Cgroup cgroup = Make({});
  EXPECT_TRUE(cgroup.layers().Has(Layer::kCgroupMemory));
  EXPECT_TRUE(cgroup.layers().Has(Layer::kCgroupPids));
  EXPECT_TRUE(cgroup.layers().Has(Layer::kCgroupCpu));
  EXPECT_FALSE(cgroup.layers().Has(Layer::kCgroupIo));
  const std::string name = cgroup.name();
  EXPECT_GT(CountDirs(name), 0U);

  Result<sys::Pipe> hold = sys::MakePipe();
  const pid_t child = SpawnInside(cgroup, [&] {
    char byte = 0;
    ::close(hold->write_end.get());
    return static_cast<int>(::read(hold->read_end.get(), &byte, 1));
  });
  // The child may still be on its way in, so ask until it is there.
  std::string seen;
  for (int i = 0; i < 10000 && seen.find(name) == std::string::npos; ++i) {
    seen = *sys::ReadFile("/proc/" + std::to_string(child) + "/cgroup");
  }
  EXPECT_NE(seen.find(name), std::string::npos) << seen;
  hold->write_end.Reset();
  EXPECT_EQ(WaitFor(child), 0);
  const Status removed = cgroup.Remove();
  EXPECT_TRUE(removed.ok()) << removed.error().message;
  EXPECT_EQ(CountDirs(name), 0U);
}

TEST_F(CgroupTest, TheMemoryCapKillsAndIsSeen) {
  policy::Limits caps;
  caps.memory = 32 << 20;
  Cgroup cgroup = Make(caps);
  const int event = cgroup.oom_event_fd();
  ASSERT_GE(event, 0);
  EXPECT_FALSE(cgroup.OomHappened());
  const int status = WaitFor(SpawnInside(cgroup, [] { return Touch(128 << 20); }));
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  pollfd waiting{event, POLLIN, 0};
  EXPECT_EQ(::poll(&waiting, 1, 5000), 1);
  EXPECT_TRUE(cgroup.OomHappened());
  const Result<Usage> usage = cgroup.ReadUsage();
  ASSERT_TRUE(usage.ok());
  EXPECT_GE(usage->oom_kills, 1U);
  EXPECT_GT(usage->memory_peak, 24U << 20);
  EXPECT_TRUE(cgroup.Remove().ok());
}

TEST_F(CgroupTest, TheSameMemoryUnderALargerCapIsFine) {
  SKIP_IF_COUNTS_ARE_INFLATED();
  Cgroup cgroup = Make({});
  EXPECT_EQ(WaitFor(SpawnInside(cgroup, [] { return Touch(128 << 20); })), 0);
  EXPECT_FALSE(cgroup.OomHappened());
  const Result<Usage> usage = cgroup.ReadUsage();
  ASSERT_TRUE(usage.ok());
  EXPECT_EQ(usage->oom_kills, 0U);
  EXPECT_GE(usage->memory_peak, 128U << 20);
}

TEST_F(CgroupTest, MemoryOfFilesInTmpfsCounts) {
  policy::Limits caps;
  caps.memory = 32 << 20;
  Cgroup small = Make(caps);
  const int status = WaitFor(SpawnInside(small, [] { return FillMemfd(128 << 20); }));
  EXPECT_TRUE((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) || WEXITSTATUS(status) == ENOMEM)
      << status;
  EXPECT_TRUE(small.OomHappened());
  Cgroup large = Make({});
  EXPECT_EQ(WaitFor(SpawnInside(large, [] { return FillMemfd(128 << 20); })), 0);
}

TEST_F(CgroupTest, TheProcessCapRefusesTheNextFork) {
  SKIP_IF_COUNTS_ARE_INFLATED();
  policy::Limits caps;
  caps.processes = 4;
  Cgroup cgroup = Make(caps);
  const int status = WaitFor(SpawnInside(cgroup, [] {
    int started = 0;
    while (started < 50) {
      const pid_t pid = ::fork();
      if (pid == 0) {
        ::pause();
        ::_exit(0);
      }
      if (pid < 0) {
        return errno == EAGAIN ? started : 98;
      }
      ++started;
    }
    return started;
  }));
  EXPECT_EQ(WEXITSTATUS(status), 4) << "init and four processes";
  const Result<Usage> usage = cgroup.ReadUsage(Cgroup::Detail::kLive);
  ASSERT_TRUE(usage.ok());
  EXPECT_GE(usage->pids_denied, 1U);
  EXPECT_EQ(usage->pids, 4U) << "the children were not waited for and still live";
  EXPECT_TRUE(cgroup.Kill().ok());
  EXPECT_TRUE(cgroup.Remove().ok());
}

TEST_F(CgroupTest, CpuTimeOfTheDeadCounts) {
  Cgroup cgroup = Make({});
  WaitFor(SpawnInside(cgroup, [] {
    ::signal(SIGCHLD, SIG_IGN);  // nobody will ever be told about the child's time
    if (::fork() == 0) {
      SpinCpu(60);
      ::_exit(0);
    }
    while (::wait(nullptr) > 0) {
    }
    return 0;
  }));
  const Result<Nanos> cpu = cgroup.ReadCpu();
  ASSERT_TRUE(cpu.ok());
  EXPECT_GE(*cpu, std::chrono::milliseconds(50));
  EXPECT_LT(*cpu, std::chrono::seconds(5));
}

// Starts a tree that does not want to die, each member holding the write end of a pipe.
pid_t SpawnStubbornTree(const Cgroup& cgroup, const sys::Pipe& alive, const sys::Pipe& ready) {
  return SpawnInside(cgroup, [&] {
    ::close(alive.read_end.get());
    for (int kind = 0; kind < 4; ++kind) {
      if (::fork() != 0) {
        continue;
      }
      ::signal(SIGTERM, SIG_IGN);
      ::signal(SIGHUP, SIG_IGN);
      if (kind >= 1) {
        ::setsid();
      }
      if (kind >= 2 && ::fork() != 0) {
        ::_exit(0);  // the rest is an orphan in a session of its own
      }
      (void)!::write(ready.write_end.get(), "x", 1);
      for (;;) {
        if (kind == 3) {
          ::raise(SIGSTOP);
        }
        ::pause();
      }
    }
    for (;;) {
      ::pause();
    }
    return 0;
  });
}

void ExpectTreeDies(Cgroup& cgroup) {
  Result<sys::Pipe> alive = sys::MakePipe();
  Result<sys::Pipe> ready = sys::MakePipe();
  ASSERT_TRUE(alive.ok() && ready.ok());
  const pid_t child = SpawnStubbornTree(cgroup, *alive, *ready);
  alive->write_end.Reset();
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(Ready(ready->read_end.get()));
  }
  const Status killed = cgroup.Kill();
  EXPECT_TRUE(killed.ok()) << killed.error().message;
  EXPECT_TRUE(EndOfFile(alive->read_end.get())) << "somebody still holds the pipe";
  EXPECT_EQ(WTERMSIG(WaitFor(child)), SIGKILL);
  const Status removed = cgroup.Remove();
  EXPECT_TRUE(removed.ok()) << removed.error().message;
}

TEST_F(CgroupTest, KillReachesOrphansOtherSessionsAndTheStopped) {
  Cgroup cgroup = Make({});
  ExpectTreeDies(cgroup);
}

TEST_F(CgroupTest, KillThroughTheFreezer) {
  if (!host_.Usable(Controller::kFreezer)) {
    GTEST_SKIP() << host_.at(Controller::kFreezer).why_not;
  }
  Cgroup cgroup = Make({}, {.io = false, .freezer = true});
  ExpectTreeDies(cgroup);
}

TEST_F(CgroupTest, KillOvertakesAForkBomb) {
  SKIP_IF_COUNTS_ARE_INFLATED();
  policy::Limits caps;
  caps.processes = 30;
  Cgroup cgroup = Make(caps);
  Result<sys::Pipe> alive = sys::MakePipe();
  Result<sys::Pipe> ready = sys::MakePipe();
  const pid_t child = SpawnInside(cgroup, [&] {
    ::signal(SIGCHLD, SIG_IGN);
    // Everybody forks for ever: whoever dies makes room for the children of those who are left.
    for (;;) {
      if (::fork() == 0) {
        (void)!::write(ready->write_end.get(), "x", 1);
      }
    }
    return 0;
  });
  alive->write_end.Reset();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(Ready(ready->read_end.get()));
  }
  const Status killed = cgroup.Kill();
  EXPECT_TRUE(killed.ok()) << killed.error().message;
  EXPECT_TRUE(EndOfFile(alive->read_end.get()));
  WaitFor(child);
  EXPECT_TRUE(cgroup.Remove().ok());
}

TEST_F(CgroupTest, BlockIoIsCountedWhenWanted) {
  if (!host_.Usable(Controller::kIo)) {
    GTEST_SKIP() << host_.at(Controller::kIo).why_not;
  }
  TempDir dir;
  const std::string path = dir.path() + "/direct";
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_DIRECT | O_CLOEXEC, 0600));
  if (!file) {
    GTEST_SKIP() << "the temporary directory is not on a disk";
  }
  Cgroup cgroup = Make({}, {.io = true, .freezer = false});
  EXPECT_TRUE(cgroup.layers().Has(Layer::kCgroupIo));
  EXPECT_EQ(WaitFor(SpawnInside(cgroup,
                                [&] {
                                  void* block = ::aligned_alloc(4096, 1 << 20);
                                  ::memset(block, 'x', 1 << 20);
                                  return ::write(file.get(), block, 1 << 20) == (1 << 20) ? 0
                                                                                          : errno;
                                })),
            0);
  const Result<Usage> usage = cgroup.ReadUsage();
  ASSERT_TRUE(usage.ok());
  EXPECT_GE(usage->io_bytes, 1U << 20);
}

TEST_F(CgroupTest, TheDestructorKillsAndRemoves) {
  std::string name;
  pid_t child = 0;
  {
    Cgroup cgroup = Make({});
    name = cgroup.name();
    Result<sys::Pipe> ready = sys::MakePipe();
    child = SpawnInside(cgroup, [&] {
      (void)!::write(ready->write_end.get(), "x", 1);
      ::pause();
      return 0;
    });
    ASSERT_TRUE(Ready(ready->read_end.get()));
    const Cgroup moved = std::move(cgroup);
    EXPECT_GT(CountDirs(name), 0U);
  }
  EXPECT_EQ(WTERMSIG(WaitFor(child)), SIGKILL);
  EXPECT_EQ(CountDirs(name), 0U);
}

TEST_F(CgroupTest, AFailureHalfWayLeavesNothing) {
  const size_t before = CountOurs();
  CgroupHost broken = host_;
  if (!broken.v2_dir.empty()) {
    broken.v2_dir += "/no-such-cgroup";
  }
  broken.at(Controller::kPids).dir += "/no-such-cgroup";
  const Result<Cgroup> made = Cgroup::Create(broken, {}, {});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, "limits.cgroup.create");
  EXPECT_EQ(CountOurs(), before);
}

// On hybrid hosts cgroup2 is there without controllers: enough to be born in it, to be measured and to be killed.
TEST_F(CgroupTest, TheV2PartWorksOnTheUnifiedHierarchyOfAHybridHost) {
  if (host_.layout != CgroupLayout::kHybrid) {
    GTEST_SKIP() << "not a hybrid host; on v2 the other tests cover this";
  }
  CgroupHost unified;
  unified.pid_namespace = host_.pid_namespace;
  for (const CgroupMount& mount : ParseMountinfo(*sys::ReadFile("/proc/self/mountinfo"))) {
    for (const Membership& membership : ParseSelfCgroup(*sys::ReadFile("/proc/self/cgroup"))) {
      if (mount.v2 && membership.v2) {
        unified.v2_dir = DirInMount(mount, membership.path);
      }
    }
  }
  unified.at(Controller::kCpuacct).version = CgroupVersion::kV2;
  unified.at(Controller::kCpuacct).usable = true;
  unified.at(Controller::kCpuacct).dir = unified.v2_dir;
  Result<Cgroup> cgroup = Cgroup::Create(unified, {}, {});
  ASSERT_TRUE(cgroup.ok()) << cgroup.error().message;
  ASSERT_GE(cgroup->clone_into_fd(), 0);
  EXPECT_EQ(cgroup->layers(), policy::LayerSet({Layer::kCgroupCpu}));
  EXPECT_EQ(WaitFor(SpawnInside(*cgroup,
                                [] {
                                  SpinCpu(60);
                                  return 0;
                                })),
            0);
  EXPECT_GE(*cgroup->ReadCpu(), std::chrono::milliseconds(50));
  ExpectTreeDies(*cgroup);
  EXPECT_FALSE(std::filesystem::exists(unified.v2_dir + "/" + cgroup->name()));
}

TEST(NoCgroup, DoesNothingAndSaysSo) {
  CgroupHost none;
  Result<Cgroup> cgroup = Cgroup::Create(none, {}, {});
  ASSERT_TRUE(cgroup.ok());
  EXPECT_TRUE(cgroup->layers().empty());
  EXPECT_EQ(cgroup->clone_into_fd(), -1);
  EXPECT_TRUE(cgroup->tasks_fds().empty());
  EXPECT_EQ(cgroup->oom_event_fd(), -1);
  EXPECT_FALSE(cgroup->OomHappened());
  EXPECT_TRUE(cgroup->Kill().ok());
  EXPECT_TRUE(cgroup->Remove().ok());
  EXPECT_EQ(cgroup->ReadUsage()->cpu, Nanos(0));
}

}  // namespace
}  // namespace coffer::limits
