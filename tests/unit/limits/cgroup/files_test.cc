// SPDX-License-Identifier: Apache-2.0
//
// The control files of both versions, on directories of plain files: what is written where, and how it is read.
#include <fcntl.h>
#include <gtest/gtest.h>

#include "limits/cgroup/control_file.h"
#include "limits/cgroup/name.h"
#include "limits/cgroup/v1.h"
#include "limits/cgroup/v2.h"
#include "tests/unit/limits/test_support.h"

namespace coffer::limits {
namespace {

class Dir {
 public:
  explicit Dir(const TempDir& dir)
      : fd_(::open(dir.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}
  int get() const { return fd_.get(); }

 private:
  UniqueFd fd_;
};

TEST(KeyedNumber, MatchesWholeKeysAtLineStarts) {
  EXPECT_EQ(KeyedNumber("oom 3\noom_kill 2\n", "oom_kill"), 2U);
  EXPECT_EQ(KeyedNumber("oom_kill_disable 0\nunder_oom 0\noom_kill 7\n", "oom_kill"), 7U);
  EXPECT_EQ(KeyedNumber("Rss:   12 kB\nPss_Anon:      34 kB\n", "Pss_Anon:"), 34U);
  EXPECT_EQ(KeyedNumber("xoom 3\n", "oom"), 0U);
  EXPECT_EQ(KeyedNumber("", "oom"), 0U);
}

TEST(ReadNumber, KnowsWhatIsNoNumber) {
  TempDir dir;
  dir.Write("a", "123\n");
  dir.Write("b", "max\n");
  const Dir fd(dir);
  EXPECT_EQ(ReadNumber(fd.get(), "a"), 123U);
  EXPECT_EQ(ReadNumber(fd.get(), "b"), std::nullopt);
  EXPECT_EQ(ReadNumber(fd.get(), "c"), std::nullopt);
}

TEST(CgroupV1Files, CapsGoToTheRightFiles) {
  TempDir dir;
  dir.Write("memory.limit_in_bytes", "");
  dir.Write("memory.memsw.limit_in_bytes", "");
  dir.Write("memory.swappiness", "untouched");
  ASSERT_TRUE(WriteMemoryCapsV1(dir.path(), 64 << 20).ok());
  EXPECT_EQ(dir.Read("memory.limit_in_bytes"), "67108864");
  EXPECT_EQ(dir.Read("memory.memsw.limit_in_bytes"), "67108864");
  EXPECT_EQ(dir.Read("memory.swappiness"), "untouched");
  dir.Write("memory.kmem.tcp.limit_in_bytes", "");
  ASSERT_TRUE(WriteMemoryCapsV1(dir.path(), 64 << 20).ok());
  EXPECT_EQ(dir.Read("memory.kmem.tcp.limit_in_bytes"), "");
  ASSERT_TRUE(WriteSocketCapV1(dir.path(), 16 << 20).ok());
  EXPECT_EQ(dir.Read("memory.kmem.tcp.limit_in_bytes"), "16777216");
}

TEST(CgroupV1Files, WithoutSwapAccountingSwapIsAvoided) {
  TempDir dir;
  dir.Write("memory.limit_in_bytes", "");
  dir.Write("memory.swappiness", "");
  ASSERT_TRUE(WriteMemoryCapsV1(dir.path(), 4096).ok());
  EXPECT_EQ(dir.Read("memory.swappiness"), "0");
}

TEST(CgroupV1Files, AMissingCapFileIsAnError) {
  TempDir dir;
  const Status memory = WriteMemoryCapsV1(dir.path(), 4096);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.error().code, "limits.cgroup.cap");
  EXPECT_FALSE(WritePidsCapV1(dir.path(), 3).ok());
}

TEST(CgroupV1Files, UsageIsRead) {
  TempDir dir;
  dir.Write("memory.max_usage_in_bytes", "65536\n");
  dir.Write("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n");
  dir.Write("pids.peak", "5\n");
  dir.Write("pids.events", "max 9\n");
  dir.Write("cpuacct.usage", "1500000\n");
  dir.Write("blkio.throttle.io_service_bytes",
            "8:0 Read 10\n8:0 Write 20\n8:0 Total 30\n9:0 Total 12\nTotal 42\n");
  Usage usage;
  ReadMemoryV1(dir.path(), 65536, usage);
  ReadPidsV1(dir.path(), 5, usage);
  ReadIoV1(dir.path(), usage);
  EXPECT_EQ(usage.memory_peak, 65536U);
  EXPECT_EQ(usage.oom_kills, 4U);
  EXPECT_EQ(usage.pids_peak, 5U);
  EXPECT_EQ(usage.pids_denied, 9U);
  EXPECT_EQ(usage.io_bytes, 42U);
  const Result<Nanos> cpu = ReadCpuV1(dir.path());
  ASSERT_TRUE(cpu.ok());
  EXPECT_EQ(*cpu, Nanos(1500000));
}

TEST(CgroupV2Files, CapsGoToTheRightFiles) {
  TempDir dir;
  for (const char* name : {"memory.max", "memory.swap.max", "memory.oom.group", "pids.max"}) {
    dir.Write(name, "");
  }
  const Dir fd(dir);
  ASSERT_TRUE(WriteMemoryCapsV2(fd.get(), 256 << 20).ok());
  ASSERT_TRUE(WritePidsCapV2(fd.get(), 33).ok());
  EXPECT_EQ(dir.Read("memory.max"), "268435456");
  EXPECT_EQ(dir.Read("memory.swap.max"), "0");
  EXPECT_EQ(dir.Read("memory.oom.group"), "1");
  EXPECT_EQ(dir.Read("pids.max"), "33");
}

TEST(CgroupV2Files, OnlySwapMayBeMissing) {
  TempDir dir;
  dir.Write("memory.max", "");
  const Dir fd(dir);
  EXPECT_FALSE(WriteMemoryCapsV2(fd.get(), 4096).ok()) << "memory.oom.group was missing";
  dir.Write("memory.oom.group", "");
  EXPECT_TRUE(WriteMemoryCapsV2(fd.get(), 4096).ok());
}

TEST(CgroupV2Files, UsageIsRead) {
  TempDir dir;
  dir.Write("cpu.stat", "usage_usec 2500\nuser_usec 2000\nsystem_usec 500\n");
  dir.Write("memory.peak", "1048576\n");
  dir.Write("memory.events", "low 0\nhigh 0\nmax 12\noom 1\noom_kill 3\noom_group_kill 1\n");
  dir.Write("pids.peak", "4\n");
  dir.Write("pids.events", "max 2\n");
  dir.Write(
      "io.stat",
      "8:0 rbytes=100 wbytes=20 rios=1 wios=1 dbytes=7 dios=0\n9:0 rbytes=3 wbytes=0 rios=1\n");
  const Dir fd(dir);
  Usage usage;
  ReadMemoryV2(fd.get(), 1048576, usage);
  ReadPidsV2(fd.get(), 4, usage);
  ReadIoV2(fd.get(), usage);
  EXPECT_EQ(usage.memory_peak, 1048576U);
  EXPECT_EQ(usage.oom_kills, 3U);
  EXPECT_EQ(usage.pids_peak, 4U);
  EXPECT_EQ(usage.pids_denied, 2U);
  EXPECT_EQ(usage.io_bytes, 123U);
  const Result<Nanos> cpu = ReadCpuV2(fd.get());
  ASSERT_TRUE(cpu.ok());
  EXPECT_EQ(*cpu, Nanos(std::chrono::microseconds(2500)));
}

TEST(CgroupV2Files, OlderKernelsWithoutPeaksStillCountEvents) {
  TempDir dir;
  dir.Write("memory.current", "4096\n");
  dir.Write("memory.events", "oom_kill 1\n");
  dir.Write("pids.current", "2\n");
  dir.Write("pids.events", "max 5\n");
  const Dir fd(dir);
  Usage usage;
  ReadMemoryV2(fd.get(), 1ULL << 30, usage);
  ReadPidsV2(fd.get(), 100, usage);
  EXPECT_EQ(usage.memory_peak, 4096U);
  EXPECT_EQ(usage.oom_kills, 1U);
  EXPECT_EQ(usage.pids_denied, 5U);
}

TEST(PrepareV2Parent, EnablesWhatIsMissingAndMovesUsWhereNeeded) {
  TempDir dir;
  dir.Write("cgroup.subtree_control", "");
  CgroupHost host;
  host.v2_dir = dir.path();
  host.v2_enable = "+memory +pids";
  host.v2_enable_io = true;
  host.pid_namespace = 7;
  ASSERT_TRUE(PrepareV2Parent(host, /*io=*/true).ok());
  EXPECT_EQ(dir.Read("cgroup.subtree_control"), "+memory +pids +io");

  dir.Write("cgroup.subtree_control", "");
  dir.Write(SupervisorLeafName(7) + "/cgroup.procs", "");
  host.v2_move_self = true;
  ASSERT_TRUE(PrepareV2Parent(host, /*io=*/false).ok());
  EXPECT_EQ(dir.Read(SupervisorLeafName(7) + "/cgroup.procs"), "0");
  EXPECT_EQ(dir.Read("cgroup.subtree_control"), "+memory +pids");
}

TEST(PrepareV2Parent, LeavesAPreparedParentAlone) {
  TempDir dir;
  dir.Write("cgroup.subtree_control", "cpu memory pids\n");
  CgroupHost host;
  host.v2_dir = dir.path();
  host.v2_enable = "+memory +pids";
  host.v2_move_self = true;
  ASSERT_TRUE(PrepareV2Parent(host, /*io=*/false).ok());
  EXPECT_EQ(dir.Read("cgroup.subtree_control"), "cpu memory pids\n");
}

TEST(OomPossible, IsNeverFalseNearTheCap) {
  EXPECT_TRUE(OomPossible(64 << 20, 64 << 20));
  EXPECT_TRUE(OomPossible(1 << 20, 16 << 20)) << "one huge page could still have been refused";
  EXPECT_TRUE(OomPossible(200ULL << 20, 256ULL << 20));
  EXPECT_FALSE(OomPossible(3 << 20, 256ULL << 20));
}

TEST(CgroupName, CarriesItsOwner) {
  const Nanos before = BootTime() - std::chrono::milliseconds(1);
  const Result<std::string> name = NewCgroupName(4026531836);
  ASSERT_TRUE(name.ok());
  const std::optional<CgroupOwner> owner = FindOwner(*name);
  ASSERT_TRUE(owner.has_value()) << *name;
  EXPECT_EQ(owner->pid, ::getpid());
  EXPECT_EQ(owner->pid_namespace, 4026531836U);
  ASSERT_TRUE(owner->made.has_value());
  EXPECT_GE(*owner->made, before);
  EXPECT_LE(*owner->made, BootTime());
  EXPECT_EQ(FindOwner(SupervisorLeafName(5)), (CgroupOwner{::getpid(), 5, std::nullopt}));
  EXPECT_NE(*name, *NewCgroupName(4026531836));
}

TEST(CgroupName, OthersAreNotOurs) {
  for (const char* name : {"",
                           "coffer",
                           "coffer-",
                           "coffer-1-2",
                           "coffer-1-2-",
                           "coffer-1-2-01234567",
                           "coffer-1-2-5f-",
                           "coffer-1-2-5f-xyz",
                           "coffer-1-2-5f-0123456g",
                           "coffer-1-2-5f-012345678",
                           "coffer-0-2-5f-01234567",
                           "coffer--1-2-5f-01234567",
                           "coffer-1-2-0-01234567",
                           "coffer-1-2-ffffffffffffffff-01234567",
                           "coffer-1-2-e8d4a51001-01234567",
                           "xcoffer-1-2-5f-01234567",
                           "coffer-supervisor-1-2-5f-01234567",
                           "coffer-supervisor-1",
                           "coffer-99999999999-2-5f-01234567",
                           "coffer-1-2-5f-0123456A",
                           "docker-1-2-5f-01234567"}) {
    EXPECT_EQ(FindOwner(name), std::nullopt) << name;
  }
  // The control.
  EXPECT_TRUE(FindOwner("coffer-1-2-5f-01234567").has_value());
}

}  // namespace
}  // namespace coffer::limits
