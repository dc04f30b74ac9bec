// SPDX-License-Identifier: Apache-2.0
#include "limits/breach.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace coffer::limits {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(FindBreach, NothingWithinTheCaps) {
  Usage usage;
  usage.cpu = milliseconds(9999);
  usage.memory = 256ULL << 20;
  usage.pids = 33;
  usage.pids_denied = 5;
  usage.io_bytes = 1ULL << 30;
  Events events;
  events.wall = milliseconds(29999);
  events.output_bytes = 1ULL << 40;
  events.disk_bytes = 100ULL << 20;
  EXPECT_FALSE(FindBreach({}, usage, events).has_value());
}

TEST(FindBreach, CpuSaysHowMuch) {
  Usage usage;
  usage.cpu = milliseconds(10020);
  const auto breach = FindBreach({}, usage, {});
  ASSERT_TRUE(breach.has_value());
  EXPECT_EQ(breach->error_class(), "limit.cpu");
  EXPECT_EQ(breach->message, "used 10.02s of CPU, the cap is 10s");
  EXPECT_EQ(breach->hint, "raise the cap with --cpu if the call needs it");
}

TEST(FindBreach, Wall) {
  Events events;
  events.wall = milliseconds(1003);
  events.wall_spent = true;
  policy::Limits caps;
  caps.wall = seconds(1);
  const auto breach = FindBreach(caps, {}, events);
  ASSERT_TRUE(breach.has_value());
  EXPECT_EQ(breach->error_class(), "limit.wall");
  EXPECT_EQ(breach->message, "ran for 1.00s, the cap is 1s");
}

// A program that was refused a thread may wait for it until its time is spent.
TEST(FindBreach, TheWallNamesWhatWasRefusedMeanwhile) {
  Events events;
  events.wall_spent = true;
  Usage usage;
  EXPECT_EQ(FindBreach({}, usage, events)->hint, "raise the cap with --wall if the call needs it");
  std::optional<Breach> breach = FindBreach({}, usage, events);
  usage.pids_denied = 4;
  const std::string refused = "4 processes or threads were refused meanwhile: raise --processes";
  EXPECT_EQ(FindBreach({}, usage, events)->hint, refused);
  ExplainWall(usage, *breach);
  EXPECT_EQ(breach->hint, refused) << "counted after the breach";
  Breach other{Cap::kMemory, "m", "h"};
  ExplainWall(usage, other);
  EXPECT_EQ(other.hint, "h");
}

TEST(FindBreach, WhatCannotBeReadIsTooMuchUntilTheWallTimeIsSpent) {
  Usage usage;
  usage.unreadable = "it cannot be counted";
  Events events;
  EXPECT_EQ(FindBreach({}, usage, events)->error_class(), "limit.memory");
  events.wall_spent = true;
  EXPECT_EQ(FindBreach({}, usage, events)->error_class(), "limit.wall");
}

TEST(FindBreach, MemoryByTheKernelOrByTheSum) {
  policy::Limits caps;
  caps.memory = 64ULL << 20;
  Usage killed;
  killed.oom_kills = 1;
  EXPECT_EQ(FindBreach(caps, killed, {})->message, "needed more memory than the cap of 64MiB");
  Usage summed;
  summed.memory = 80ULL << 20;
  EXPECT_EQ(FindBreach(caps, summed, {})->message, "used 80.0MiB of memory, the cap is 64MiB");
  Usage peaked;
  peaked.memory_peak = 64ULL << 20;
  EXPECT_FALSE(FindBreach(caps, peaked, {}).has_value())
      << "a cache that filled the cap is no breach";
}

TEST(FindBreach, MemoryExplainsTheTimeItCost) {
  Usage usage;
  usage.oom_kills = 1;
  usage.cpu = seconds(20);
  Events events;
  events.wall_spent = true;
  EXPECT_EQ(FindBreach({}, usage, events)->cap, Cap::kMemory);
}

TEST(FindBreach, DiskBytesInodesAndIo) {
  Events bytes;
  bytes.disk_bytes = (100ULL << 20) + (1 << 20);
  EXPECT_EQ(FindBreach({}, {}, bytes)->message,
            "wrote 101.0MiB to a writable place, the cap is 100MiB");
  Events inodes;
  inodes.disk_inodes = 20000;
  EXPECT_EQ(FindBreach({}, {}, inodes)->message, "made 20000 files, the cap is 16384");
  Usage io;
  io.io_bytes = (1ULL << 30) + 1;
  EXPECT_EQ(FindBreach({}, io, {})->error_class(), "limit.disk");
}

TEST(FindBreach, WhatCannotBeReadIsTooMuch) {
  Usage usage;
  EXPECT_FALSE(FindBreach({}, usage, {}).has_value());
  usage.unreadable = "process 7 hides what it holds";
  EXPECT_EQ(FindBreach({}, usage, {})->error_class(), "limit.memory");
  EXPECT_EQ(FindBreach({}, usage, {})->message, "process 7 hides what it holds");
  EXPECT_TRUE(Reached(Cap::kMemory, {}, usage, {}));
  Events events;
  events.disk_unknown = "a directory is closed";
  EXPECT_EQ(FindBreach({}, {}, events)->error_class(), "limit.disk");
  EXPECT_TRUE(Reached(Cap::kDisk, {}, {}, events));
  Usage later;
  KeepPeaks(usage, later);
  EXPECT_EQ(later.unreadable, usage.unreadable) << "what was hidden once is not forgotten";
}

TEST(FindBreach, ProcessesOnlyWhereTheKernelDidNotRefuse) {
  Usage usage;
  usage.pids = 40;
  EXPECT_EQ(FindBreach({}, usage, {})->message, "ran 39 processes and threads, the cap is 32");
}

// However the program ended: one that makes do with fewer threads is told, too.
TEST(FindRefusedTasks, RefusedForksAreABreachOfASuccessAsWell) {
  Usage usage;
  Events events;
  EXPECT_FALSE(FindRefusedTasks({}, usage, events).has_value()) << "the control";
  usage.pids_denied = 3;
  EXPECT_EQ(FindRefusedTasks({}, usage, events)->error_class(), "limit.processes");
  EXPECT_EQ(FindRefusedTasks({}, usage, events)->message,
            "wanted more than 32 processes and threads at once (3 refused)");
  events.failed = true;
  EXPECT_EQ(ExplainFailure({}, usage, events)->error_class(), "limit.processes");
}

TEST(ExplainFailure, SignalsOfRlimits) {
  Events events;
  events.failed = true;
  events.exit_signal = SIGXCPU;
  EXPECT_EQ(ExplainFailure({}, {}, events)->cap, Cap::kCpu);
  events.exit_signal = SIGXFSZ;
  EXPECT_EQ(ExplainFailure({}, {}, events)->cap, Cap::kDisk);
  events.exit_signal = SIGSEGV;
  EXPECT_FALSE(ExplainFailure({}, {}, events).has_value());
}

// An ordinary user has no cgroup that counts refused forks: a tree larger than its cap is all that can be seen.
TEST(FindRefusedTasks, ATreeAboveItsCapIsABreachWhereRefusalsAreNotCounted) {
  Usage usage;
  usage.pids_peak = 32 + 1 + kSpareTasks;  // with init
  Events events;
  EXPECT_FALSE(FindRefusedTasks({}, usage, events).has_value())
      << "the control: a cgroup would say";
  EXPECT_FALSE(Reached(Cap::kProcesses, {}, usage, events));
  events.refusals_unseen = true;
  EXPECT_EQ(FindRefusedTasks({}, usage, events)->error_class(), "limit.processes");
  EXPECT_TRUE(Reached(Cap::kProcesses, {}, usage, events));
  usage.pids_peak = 32 + 1;
  EXPECT_FALSE(Reached(Cap::kProcesses, {}, usage, events)) << "all of the cap may be used";
}

TEST(ExplainFailure, AFullPlaceExplainsAFailure) {
  Events events;
  events.disk_bytes = 100ULL << 20;
  EXPECT_FALSE(ExplainFailure({}, {}, events).has_value());
  events.failed = true;
  EXPECT_EQ(ExplainFailure({}, {}, events)->cap, Cap::kDisk);
}

TEST(ExplainFailure, AFullPrivatePlaceIsNamed) {
  Events events;
  events.full_place = {"/tmp (also /dev/shm)", "--tmp", 16ULL << 20, 2, false};
  EXPECT_FALSE(ExplainFailure({}, {}, events).has_value()) << "the program made do with it";
  EXPECT_TRUE(Reached(Cap::kDisk, {}, {}, events));
  events.failed = true;
  EXPECT_EQ(ExplainFailure({}, {}, events)->error_class(), "limit.disk");
  EXPECT_EQ(ExplainFailure({}, {}, events)->message,
            "/tmp (also /dev/shm) is full: it holds 16.0MiB");
  EXPECT_EQ(ExplainFailure({}, {}, events)->hint,
            "give it more room with --tmp SIZE if the call needs it");
  events.full_place->of_files = true;
  EXPECT_EQ(ExplainFailure({}, {}, events)->message,
            "/tmp (also /dev/shm) is full: it holds 2 files");
}

TEST(Reached, ReportsEachCapByItself) {
  Usage usage;
  usage.pids_denied = 1;
  Events events;
  events.output_bytes = (1ULL << 20) + 1;
  EXPECT_TRUE(Reached(Cap::kProcesses, {}, usage, events));
  EXPECT_TRUE(Reached(Cap::kOutput, {}, usage, events));
  for (const Cap cap : {Cap::kCpu, Cap::kWall, Cap::kMemory, Cap::kDisk, Cap::kIo}) {
    EXPECT_FALSE(Reached(cap, {}, usage, events)) << CapClass(cap);
  }
  events.output_bytes = 1ULL << 20;
  EXPECT_FALSE(Reached(Cap::kOutput, {}, usage, events));
}

// What no cgroup counts is held to the same cap, and does not change the cgroup's figure.
TEST(Breach, MemoryBesideTheCgroupCounts) {
  policy::Limits caps;
  caps.memory = 64ULL << 20;
  Usage usage;
  usage.memory = usage.memory_peak = 40ULL << 20;
  usage.uncounted_peak = 20ULL << 20;
  usage.with_uncounted = 60ULL << 20;
  EXPECT_FALSE(FindBreach(caps, usage, {}));
  usage.with_uncounted = 65ULL << 20;
  const std::optional<Breach> breach = FindBreach(caps, usage, {});
  ASSERT_TRUE(breach);
  EXPECT_EQ(breach->cap, Cap::kMemory);
  EXPECT_NE(breach->message.find("65.0MiB"), std::string::npos) << breach->message;
}

TEST(KeepPeaks, OnlyWhatIsNowMayShrink) {
  Usage earlier;
  earlier.cpu = seconds(2);
  earlier.memory = 100;
  earlier.memory_peak = 200;
  earlier.oom_kills = 1;
  Usage later;
  earlier.uncounted_peak = 30;
  earlier.with_uncounted = 130;
  later.memory = 50;
  later.pids = 3;
  KeepPeaks(earlier, later);
  EXPECT_EQ(later.cpu, seconds(2));
  EXPECT_EQ(later.memory, 50U);
  EXPECT_EQ(later.memory_peak, 200U);
  EXPECT_EQ(later.uncounted_peak, 30U);
  EXPECT_EQ(later.with_uncounted, 0U);
  EXPECT_EQ(later.pids_peak, 3U);
  EXPECT_EQ(later.oom_kills, 1U);
}

}  // namespace
}  // namespace coffer::limits
