// SPDX-License-Identifier: Apache-2.0
#include "limits/tree_usage.h"

#include <gtest/gtest.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>

#include <thread>

#include "base/sys.h"
#include "limits/proc_tree.h"
#include "limits/tree_cpu.h"
#include "test_support.h"

namespace coffer::limits {
namespace {

constexpr uint64_t kHugeCap = 1ULL << 50;

// A child that is a subreaper, as a boundary's init is, runs `body`, says it is ready, and waits to be told to go on.
class Init {
 public:
  template <typename Body>
  explicit Init(Body body) : ready_(sys::MakePipe().value()), go_(sys::MakePipe().value()) {
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_CHILD_SUBREAPER, 1);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      go_.write_end.Reset();
      body(*this);
      SayReady();
      Wait();
      ::_exit(0);
    }
    go_.read_end.Reset();
    EXPECT_TRUE(Ready(ready_.read_end.get()));
  }
  ~Init() {
    go_.write_end.Reset();
    WaitFor(pid_);
  }
  Init(const Init&) = delete;
  Init& operator=(const Init&) = delete;

  pid_t pid() const { return pid_; }
  void SayReady() const { (void)!::write(ready_.write_end.get(), "x", 1); }
  // In the child and its children: until the test is over.
  void Wait() const {
    char byte = 0;
    (void)!::read(go_.read_end.get(), &byte, 1);
  }

 private:
  sys::Pipe ready_;
  sys::Pipe go_;
  pid_t pid_ = 0;
};

// A child of init that does `body` and then waits: init itself is trusted and not looked at.
template <typename Body>
void InChild(const Init& self, Body body) {
  const sys::Pipe done = sys::MakePipe().value();
  if (::fork() == 0) {
    body();
    (void)!::write(done.write_end.get(), "x", 1);
    self.Wait();
    ::_exit(0);
  }
  Ready(done.read_end.get());
}

void* TouchShared(size_t bytes, int flags) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
  ::memset(memory, 1, bytes);
  return memory;
}

TEST(TreeUsage, FindsOrphansOtherSessionsAndThreads) {
  SKIP_IF_COUNTS_ARE_INFLATED();
  const Init init([](const Init& self) {
    const sys::Pipe started = sys::MakePipe().value();
    for (int i = 0; i < 3; ++i) {
      if (::fork() == 0) {
        ::setsid();
        if (i == 2 && ::fork() != 0) {
          ::_exit(0);
        }
        (void)!::write(started.write_end.get(), "x", 1);
        self.Wait();
        ::_exit(0);
      }
    }
    for (int i = 0; i < 3; ++i) {
      Ready(started.read_end.get());
    }
    int status = 0;
    ::waitpid(-1, &status, 0);  // the middle one of the double fork
    std::thread([&self] { self.Wait(); }).detach();
  });
  TreeUsage tree(init.pid(), kHugeCap);
  const Result<Usage> usage = tree.Measure();
  ASSERT_TRUE(usage.ok());
  EXPECT_EQ(tree.pids().size(), 4U) << "init and three children";
  EXPECT_EQ(usage->pids, 5U) << "and one thread";
}

// Dead ones that only init has to reap are no one's fault but ours; those of a parent that does not wait are its own.
TEST(TreeUsage, TheDeadCountUnlessInitIsToReapThem) {
  SKIP_IF_COUNTS_ARE_INFLATED();
  constexpr int kDead = 20;
  const auto make = [](int count) {
    for (int i = 0; i < count; ++i) {
      const pid_t child = ::fork();
      if (child == 0) {
        ::_exit(0);
      }
      siginfo_t info;
      ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
    }
  };
  const Init slow([&](const Init& /*self*/) { make(kDead); });
  EXPECT_EQ(TreeUsage(slow.pid(), kHugeCap).Measure()->pids, 1U);
  const Init other([&](const Init& self) {
    if (::fork() == 0) {
      make(kDead);
      self.SayReady();
      self.Wait();
      ::_exit(0);
    }
    self.Wait();
    ::_exit(0);
  });
  EXPECT_EQ(TreeUsage(other.pid(), kHugeCap).Measure()->pids, 2U + kDead);
}

TEST(TreeUsage, CountsCpuOfTheLivingAndOfTheReaped) {
  const Init init([](const Init&) {
    if (::fork() == 0) {
      SpinCpu(80);
      ::_exit(0);
    }
    ::wait(nullptr);
    SpinCpu(60);
  });
  TreeUsage tree(init.pid(), kHugeCap);
  const Result<Usage> usage = tree.Measure();
  ASSERT_TRUE(usage.ok());
  EXPECT_GE(usage->cpu, std::chrono::milliseconds(110)) << "clock ticks are 10 ms";
  EXPECT_LT(usage->cpu, std::chrono::seconds(5));
}

// Each of them has used less than a clock tick, so that the kernel's sums show nothing of it: by a process and by its second thread.
TEST(TreeCpu, KnowsWhatManyShortRunsAddUpTo) {
  constexpr int kProcesses = 20;
  const sys::Pipe spun = sys::MakePipe().value();
  const Init init([&](const Init& self) {
    for (int i = 0; i < kProcesses; ++i) {
      if (::fork() == 0) {
        const auto spin = [&] {
          SpinCpu(5);
          (void)!::write(spun.write_end.get(), "x", 1);
          self.Wait();
        };
        if (i % 2 == 0) {
          spin();
        } else {
          std::thread(spin).detach();
        }
        self.Wait();
        ::_exit(0);
      }
    }
    for (int i = 0; i < kProcesses; ++i) {
      Ready(spun.read_end.get());
    }
  });
  ProcTree tree(init.pid(), "/proc");
  const std::vector<TreeProcess> processes = tree.Find([] { return false; });
  ASSERT_EQ(processes.size(), kProcesses + 1U);
  TreeCpu cpu;
  (void)cpu.Add(tree, processes);
  EXPECT_GE(cpu.ran(), std::chrono::milliseconds(5 * kProcesses));
  const Nanos before = cpu.ran();
  (void)cpu.Add(tree, processes);
  EXPECT_GE(cpu.ran(), before);
  EXPECT_LT(cpu.ran(), 2 * before) << "it is counted once";
}

TEST(TreeUsage, KeepsWhatItSawOfProcessesNobodyWaitedFor) {
  const sys::Pipe spun = sys::MakePipe().value();
  const sys::Pipe leave = sys::MakePipe().value();
  const sys::Pipe left = sys::MakePipe().value();
  const Init init([&](const Init&) {
    ::signal(SIGCHLD, SIG_IGN);  // the kernel now forgets the children's time
    if (::fork() == 0) {
      SpinCpu(100);
      (void)!::write(spun.write_end.get(), "x", 1);
      Ready(leave.read_end.get());
      ::_exit(0);
    }
    Ready(spun.read_end.get());
    (void)!::write(left.write_end.get(), "x", 1);
  });
  TreeUsage tree(init.pid(), kHugeCap);
  ASSERT_TRUE(Ready(left.read_end.get()));
  const Result<Usage> before = tree.Measure();
  ASSERT_TRUE(before.ok());
  EXPECT_GE(before->cpu, std::chrono::milliseconds(80));
  (void)!::write(leave.write_end.get(), "x", 1);
  Result<Usage> after = tree.Measure();
  for (int i = 0; i < 100000 && after.ok() && tree.pids().size() > 1; ++i) {
    after = tree.Measure();
  }
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(tree.pids().size(), 1U);
  EXPECT_GE(after->cpu, before->cpu);
}

TEST(TreeUsage, SeesMemoryThatIsTouched) {
  const Init small([](const Init&) {});
  const Init large([](const Init&) { TouchShared(64 << 20, MAP_PRIVATE); });
  const Result<Usage> without = TreeUsage(small.pid(), kHugeCap).Measure();
  const Result<Usage> with = TreeUsage(large.pid(), kHugeCap).Measure();
  ASSERT_TRUE(without.ok() && with.ok());
  EXPECT_GE(with->memory, without->memory + (60U << 20));
}

TEST(TreeUsage, PagesSharedByForkCountOnceWhenItMatters) {
  SKIP_IF_COUNTS_ARE_INFLATED();
  const Init init([](const Init&) {
    TouchShared(64 << 20, MAP_PRIVATE);
    for (int i = 0; i < 4; ++i) {
      if (::fork() == 0) {
        ::pause();
        ::_exit(0);
      }
    }
  });
  const Init small([](const Init&) {});
  const uint64_t one = TreeUsage(small.pid(), /*memory_cap=*/8 << 20).Measure()->memory;
  TreeUsage tree(init.pid(), /*memory_cap=*/8 << 20);
  const Result<Usage> usage = tree.Measure();
  ASSERT_TRUE(usage.ok());
  ASSERT_EQ(tree.pids().size(), 5U);
  EXPECT_GE(usage->memory, 60U << 20);
  EXPECT_LT(usage->memory, 5 * one + (100U << 20))
      << "five times the same pages are not five times the memory";
  for (const pid_t pid : tree.pids()) {
    if (pid != init.pid()) {
      ::kill(pid, SIGKILL);
    }
  }
}

TEST(TreeUsage, CountsMemfdsThatNobodyMapped) {
  const Init init([](const Init& self) {
    InChild(self, [] {
      const int fd = ::memfd_create("hidden", 0);
      static char block[1 << 20];
      for (int i = 0; i < 32; ++i) {
        (void)!::write(fd, block, sizeof(block));
      }
      EXPECT_GE(::dup(fd), 0);  // the same file twice
    });
  });
  const Init small([](const Init&) {});
  const Result<Usage> without = TreeUsage(small.pid(), kHugeCap).Measure();
  const Result<Usage> with = TreeUsage(init.pid(), kHugeCap).Measure();
  ASSERT_TRUE(without.ok() && with.ok());
  EXPECT_GE(with->memory, without->memory + (31U << 20));
  EXPECT_LT(with->memory, without->memory + (60U << 20)) << "held twice, counted once";
}

TEST(TreeUsage, CountsFilesInTheGivenTmpfs) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can mount the tmpfs this test fills";
  }
  TempDir dir;
  ASSERT_EQ(::mount("none", dir.path().c_str(), "tmpfs", 0, "size=64m"), 0);
  dir.Write("file", std::string(20 << 20, 'x'));
  const UniqueFd fd(::open(dir.path().c_str(), O_PATH | O_CLOEXEC));
  const Init init([](const Init&) {});
  TreeUsage without(init.pid(), kHugeCap);
  TreeUsage with(init.pid(), kHugeCap);
  with.CountTmpfs(fd.get());
  const uint64_t difference = with.Measure()->memory - without.Measure()->memory;
  ::umount2(dir.path().c_str(), MNT_DETACH);
  EXPECT_GE(difference, 20U << 20);
  EXPECT_LT(difference, 22U << 20);
}

TEST(TreeUsage, ASampleStopsAtTheWallTime) {
  const Init init([](const Init&) {});
  TreeUsage tree(init.pid(), kHugeCap);
  const Result<Usage> before = tree.Measure();
  ASSERT_TRUE(before.ok());
  tree.StopAt(BootTime());
  const Result<Usage> late = tree.Measure();
  // Either nothing was found any more, or what was known before is told: never half of a sample.
  if (late.ok()) {
    EXPECT_EQ(late->memory, before->memory);
    EXPECT_EQ(late->unreadable, "");
  }
}

TEST(TreeUsage, IsAnErrorWhenInitIsGone) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::_exit(0);
  }
  WaitFor(pid);
  EXPECT_FALSE(TreeUsage(pid, kHugeCap).Measure().ok());
}

// A /proc without children files, and with a name that tries to look like fields.
TEST(TreeUsage, ScansWhereTheKernelListsNoChildren) {
  TempDir proc;
  const auto add = [&](int pid, int parent, const char* name, int ticks) {
    const std::string id = std::to_string(pid);
    proc.Write(id + "/stat", id + " (" + name + ") S " + std::to_string(parent) +
                                 " 0 0 0 0 0 0 0 0 0 " + std::to_string(ticks) +
                                 " 0 5 0 20 0 2 0 77 0 0\n");
    proc.Write(id + "/statm", "100 10 4 0 0 0 0\n");
    proc.Write(id + "/io", "rchar: 9\nread_bytes: 4096\nwrite_bytes: 8192\n");
  };
  add(10, 1, "init", 100);
  add(11, 10, "x) R 99 (y", 50);
  add(12, 11, "deep", 25);
  add(20, 1, "stranger", 1000);
  proc.Write("self/stat", "");
  TreeUsage tree(10, kHugeCap, proc.path());
  const Result<Usage> usage = tree.Measure();
  ASSERT_TRUE(usage.ok());
  EXPECT_EQ(tree.pids(), (std::vector<pid_t>{10, 11, 12}));
  const auto tick = Nanos(std::chrono::seconds(1)) / ::sysconf(_SC_CLK_TCK);
  EXPECT_EQ(usage->cpu, tick * (100 + 50 + 25 + 3 * 5));
  EXPECT_EQ(usage->pids, 6U);
  EXPECT_EQ(usage->memory, 3 * 6 * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(usage->io_bytes, 3U * 12288);
}

}  // namespace
}  // namespace coffer::limits
