// SPDX-License-Identifier: Apache-2.0
//
// RS: eating the machine. Every cap must hold against the sum of the tree, and the host must not notice.
#include "tests/escape/resources.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "base/remove_tree.h"
#include "tests/support/host.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

TEST_P(ResourceEscape, RS_01_ForkBomb) {
  EXPECT_TRUE(Contains(RunOutside({"fork-bomb", "200"}).out, "alive 200")) << "NO-CONTROL";
  const RunResult result = RunProbe(Flags({"--processes", "20"}), {"fork-bomb", "500"});
  const long alive = Figure(result.out, "alive");
  EXPECT_TRUE(Contains(result.out, "fork: REFUSED errno=EAGAIN")) << result.Describe();
  EXPECT_GE(alive, 10) << "the cap bites far too early\n" << result.Describe();
  EXPECT_LE(alive, 20) << result.Describe();
  // Who refused the fork is known only to a pids cgroup.
  if (!Contains(result.receipt["isolation"]["missing"].dump(), "cgroup-pids")) {
    ExpectEnded(result, "limit.processes");
  }
}

TEST_P(ResourceEscape, RS_01_WildForkBomb) {
  // A bounded bomb is the control: the wild one is for boundaries with a cap that was just seen to work.
  EXPECT_TRUE(Contains(RunOutside({"fork-bomb", "200"}).out, "alive 200")) << "NO-CONTROL";
  const RunResult first = RunProbe(Flags({"--processes", "20"}), {"fork-bomb", "200"});
  ASSERT_LE(Figure(first.out, "alive"), 20) << "not bombing a host that is not protected\n"
                                            << first.Describe();
  const std::string token = NewToken();
  // On a busy machine the kernel is slow to free what dead processes had, and that counts as memory of the call.
  const RunResult result =
      RunProbe(Flags({"--processes", "20", "--wall", "2s", "--cpu", "60s", "--memory", "4GiB"}),
               {"fork-bomb-wild", token});
  // Either the wall ends it, or it chokes on refused forks before that; both are breaches.
  ExpectEnded(result, result.ErrorClass() == "limit.processes" ? "limit.processes" : "limit.wall");
  EXPECT_FALSE(result.timed_out);
  EXPECT_TRUE(WaitUntil([&] { return FindProcesses(token).empty(); }, Seconds(20)))
      << "processes stayed";
}

TEST_P(ResourceEscape, RS_02_ThreadBomb) {
  EXPECT_TRUE(Contains(RunOutside({"thread-bomb", "200"}).out, "alive 200")) << "NO-CONTROL";
  const RunResult result = RunProbe(Flags({"--processes", "20"}), {"thread-bomb", "500"});
  EXPECT_TRUE(Contains(result.out, "thread: REFUSED errno=EAGAIN")) << result.Describe();
  EXPECT_LE(Figure(result.out, "alive"), 20) << result.Describe();
}

// The probe makes do with the threads it gets, and ends at once with status 0: it is a breach all the same, for a user
// without a pids cgroup too.
TEST_P(ResourceEscape, RS_02_RefusedThreadsAreABreachHoweverTheProgramEnds) {
  EXPECT_TRUE(Contains(RunOutside({"thread-bomb", "200"}).out, "alive 200")) << "NO-CONTROL";
  // At the process level a user's other processes count against the same rlimit, and come and go.
  const bool alone = container() || ::geteuid() == 0;
  const int rounds = alone ? 10 : 0;  // nothing that is sampled is seen ten times in a row
  const RunResult far_above = RunProbe(Flags({"--processes", "20"}), {"thread-bomb", "500"});
  EXPECT_LE(Figure(far_above.out, "alive"), 19) << far_above.Describe();
  for (int round = 0; round < rounds; ++round) {
    const RunResult within = RunProbe(Flags({"--processes", "20"}), {"thread-bomb", "19"});
    EXPECT_EQ(within.exit, 0) << "the control: all of the cap may be used\n" << within.Describe();
    EXPECT_TRUE(Contains(within.out, "alive 19")) << within.Describe();
    EXPECT_FALSE(Breached(within, "processes")) << within.Describe();
    const RunResult above = RunProbe(Flags({"--processes", "20"}), {"thread-bomb", "20"});
    EXPECT_TRUE(Contains(above.out, "alive 19")) << above.Describe();
    ExpectEnded(above, "limit.processes");
  }
}

TEST_P(ResourceEscape, RS_03_Memory) {
  EXPECT_TRUE(Contains(RunOutside({"eat-memory", "300"}).out, "memory: OPEN")) << "NO-CONTROL";
  const RunResult small = RunProbe(Flags({"--memory", "64MiB"}), {"eat-memory", "30"});
  EXPECT_EQ(small.exit, 0) << "half of the cap must be usable\n" << small.Describe();
  const RunResult result = RunProbe(Flags({"--memory", "64MiB"}), {"eat-memory", "640"});
  EXPECT_FALSE(Contains(result.out, "OPEN")) << result.Describe();
  ExpectEnded(result, "limit.memory");
}

TEST_P(ResourceEscape, RS_03_MemorySpreadOverChildren) {
  EXPECT_TRUE(Contains(RunOutside({"eat-tree", "200", "4"}).out, "OPEN")) << "NO-CONTROL";
  const RunResult result = RunProbe(Flags({"--memory", "64MiB"}), {"eat-tree", "400", "8"});
  EXPECT_FALSE(Contains(result.out, "OPEN")) << result.Describe();
  ExpectEnded(result, "limit.memory");
}

TEST_P(ResourceEscape, RS_04_MemoryThatHidesInFiles) {
  EXPECT_TRUE(Contains(RunOutside({"eat-memfd", "200"}).out, "memory: OPEN")) << "NO-CONTROL";
  for (const char* verb : {"eat-memfd", "eat-shm"}) {
    const RunResult result = RunProbe(Flags({"--memory", "64MiB"}), {verb, "400"});
    EXPECT_FALSE(Contains(result.out, "OPEN")) << verb << "\n" << result.Describe();
    // Refused by a size, or ended by the cap: never kept.
    EXPECT_TRUE(Contains(result.out, "REFUSED") || result.exit == 122) << verb << "\n"
                                                                       << result.Describe();
  }
}

TEST_P(ResourceEscape, RS_04_EveryWritablePlaceIsBounded) {
  TempDir dir;
  EXPECT_TRUE(Contains(RunOutside({"fill", dir / "f", "20"}).out, "OPEN")) << "NO-CONTROL";
  for (const char* file :
       {"f", "/tmp/f", "/dev/shm/f", "/f", "/etc/f", "/dev/f", "/run/f", "/var/tmp/f"}) {
    const RunResult result = RunProbe(
        Flags({"--disk", "8MiB", "--tmp", "8MiB", "--memory", "512MiB"}), {"fill", file, "200"});
    EXPECT_FALSE(Contains(result.out, "OPEN")) << file << "\n" << result.Describe();
    EXPECT_LE(Figure(result.out, "wrote"), 9L << 20) << file << "\n" << result.Describe();
    EXPECT_TRUE(Contains(result.out, "REFUSED") || result.exit == 122) << file << "\n"
                                                                       << result.Describe();
  }
}

TEST_P(ResourceEscape, RS_06_DiskInTheWorkspace) {
  TempDir dir;
  EXPECT_TRUE(Contains(RunOutside({"fill", dir / "f", "40"}).out, "OPEN")) << "NO-CONTROL";
  for (const Strings& verb : {Strings{"fill", "f", "100"},
                              {"fill-sparse", "f", "100"},
                              {"fill-allocate", "f", "100"},
                              {"fill-tmpfile", ".", "100"},
                              {"fill-many", ".", "100", "50"}}) {
    const RunResult result = RunProbe(Flags({"--disk", "16MiB"}), verb);
    ExpectRan(result);
    const long wrote = Figure(result.out, "wrote");
    if (!container() && wrote > (17L << 20)) {
      // Without a private root the workspace is a directory with a watch, not a wall (docs/HONEST_LIMITS.md): what was
      // faster than the watch is a breach all the same.
      ExpectEnded(result, "limit.disk");
      continue;
    }
    EXPECT_FALSE(Contains(result.out, "OPEN")) << verb[0] << "\n" << result.Describe();
    EXPECT_LE(wrote, 17L << 20) << verb[0] << "\n" << result.Describe();
    if (verb[0] == "fill" && container()) {
      EXPECT_GE(wrote, 15L << 20) << "the cap bites too early\n" << result.Describe();
      EXPECT_TRUE(Contains(result.out, "ENOSPC") || Contains(result.out, "EFBIG") ||
                  Contains(result.out, "EDQUOT"))
          << result.Describe();
      EXPECT_TRUE(Breached(result, "disk")) << result.Describe();
    }
  }
}

TEST_P(ResourceEscape, RS_06_DiskInASharedDirectory) {
  TempDir dir;
  const std::string shared = dir.MakeDir("shared", 0777);
  if (!container() && IsRoot()) {
    EXPECT_EQ(RunProbe(Flags({"--rw", shared}), {"exit", "0"}).exit, 120) << "no mounts as root";
    return;
  }
  const std::string at = container() ? "/data" : shared;
  const std::string control = dir / "control";
  EXPECT_TRUE(Contains(RunOutside({"fill", control, "40"}).out, "OPEN")) << "NO-CONTROL";
  const Strings flags =
      Flags({"--rw", container() ? shared + ":/data" : shared, "--disk", "16MiB", "--io", "10GiB"});
  for (const Strings& verb : {Strings{"fill", at + "/one", "400"},
                              {"fill-many", at, "400", "80"},
                              {"fill-allocate", at + "/two", "400"},
                              {"fill-tmpfile", at, "400"}}) {
    const RunResult result = RunProbe(flags, verb);
    ExpectRan(result);
    EXPECT_FALSE(Contains(result.out, "OPEN")) << verb[0] << ": 400 MiB went through a cap of 16\n"
                                               << result.Describe();
    uint64_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(shared)) {
      struct stat info = {};
      stat(entry.path().c_str(), &info);
      bytes += static_cast<uint64_t>(info.st_blocks) * 512;
      std::filesystem::remove(entry.path());
    }
    // A watch, not a wall: what can be written between two looks may be there, and no more.
    EXPECT_LE(bytes, 300ULL << 20) << verb[0] << "\n" << result.Describe();
  }
}

// fallocate by another name: an ioctl that takes any amount of a disk in one call, past RLIMIT_FSIZE.
TEST_P(ResourceEscape, RS_06_NoSpaceIsReservedAheadOfTheWatch) {
  TempDir dir;
  const std::string shared = dir.MakeDir("shared", 0777);
  EXPECT_TRUE(Contains(RunOutside({"fill-reserve", shared + "/control", "200"}).out, "OPEN"))
      << "NO-CONTROL";
  std::filesystem::remove(shared + "/control");
  struct Place {
    Strings flags;
    std::string at;
  };
  std::vector<Place> places = {{{}, "."}};
  if (container()) {
    places.push_back({{"--rw", shared + ":/data"}, "/data"});
    places.push_back({{"--out", shared}, "/out"});
    places.push_back({{"--rw", shared + ":/data", "--seccomp", "compat"}, "/data"});
  } else if (!IsRoot()) {
    places.push_back({{"--rw", shared}, shared});
  }
  for (Place& place : places) {
    place.flags.insert(place.flags.end(), {"--disk", "16MiB"});
    const RunResult result =
        RunProbe(Flags(place.flags), {"fill-reserve", place.at + "/file", "200"});
    EXPECT_TRUE(Contains(result.out, container() ? "REFUSED errno=EOPNOTSUPP" : "REFUSED"))
        << place.at << "\n"
        << result.Describe();
    for (const auto& entry : std::filesystem::directory_iterator(shared)) {
      struct stat info = {};
      stat(entry.path().c_str(), &info);
      EXPECT_LE(info.st_blocks * 512, 1 << 20) << place.at;
      std::filesystem::remove(entry.path());
    }
  }
}

TEST_P(ResourceEscape, RS_06_FilesWithoutANameCount) {
  TempDir dir;
  const std::string shared = dir.MakeDir("shared", 0777);
  const bool workspace = !container() && IsRoot();
  const std::string at = workspace ? "." : container() ? "/data" : shared;
  Strings flags = Flags({"--disk", "16MiB", "--io", "10GiB", "--memory", "512MiB"});
  if (!workspace) {
    flags.insert(flags.end(), {"--rw", container() ? shared + ":/data" : shared});
  }
  // The control in both directions: outside everything is kept, and inside the same bytes are no breach if nothing is.
  const RunResult innocent = RunProbe(flags, {"hold-nameless", at, "96", "drop"});
  EXPECT_EQ(innocent.exit, 0) << innocent.Describe();
  EXPECT_TRUE(Contains(innocent.out, "hold: OPEN")) << innocent.Describe();
  for (const char* how : {"open", "map", "flight", "queue", "thread"}) {
    EXPECT_TRUE(Contains(RunOutside({"hold-nameless", shared, "96", how}).out, "hold: OPEN"))
        << "NO-CONTROL " << how;
    // A watch, not a wall: a look may come late, but it comes, because what is held stays for a while.
    const RunResult result = RunProbe(flags, {"hold-nameless", at, "96", how, "4"});
    ExpectEnded(result, "limit.disk");
    const Json& disk = result.receipt["limits"]["disk"];
    EXPECT_GT(disk["used"], 16 << 20) << how << "\n" << result.Describe();
    EXPECT_EQ(disk["enforced"], false) << result.Describe();
  }
}

TEST_P(ResourceEscape, RS_04_MemoryOutsideAnyProcess) {
  const Strings flags = Flags({"--memory", "64MiB", "--open-files", "400"});
  const RunResult innocent = RunProbe(flags, {"hide-memory", "200", "drop"});
  EXPECT_EQ(innocent.exit, 0) << innocent.Describe();
  for (const char* how : {"open", "undumpable", "sockets", "tables", "thread"}) {
    EXPECT_TRUE(Contains(RunOutside({"hide-memory", "200", how}).out, "hide: OPEN"))
        << "NO-CONTROL " << how;
    const RunResult result = RunProbe(flags, {"hide-memory", "200", how, "4"});
    const bool sampled = IsSampled(result);
    // The watch of the disk cannot look into such a process either, and may be the first to try.
    const bool unseen = how == std::string("undumpable") && !sampled && !IsRoot();
    ExpectEnded(result,
                unseen && result.ErrorClass() == "limit.disk" ? "limit.disk" : "limit.memory");
    if (!sampled) {  // a sample may come late, but it comes: what is hidden stays for a while
      EXPECT_FALSE(Contains(result.out, "OPEN")) << how << "\n" << result.Describe();
    }
    EXPECT_EQ(Memory(result)["enforced"], !sampled) << result.Describe();
  }
}

// Neither a cgroup nor an rlimit counts locks: the supervisor does, and the receipt says of them that it sampled. The
// figure of a memory cgroup stays its own.
TEST_P(ResourceEscape, RS_04_FileLocksAreMemory) {
  const Strings flags = Flags({"--memory", "64MiB", "--cpu", "60s", "--wall", "60s"});
  const RunResult innocent = RunProbe(flags, {"hold-locks", "4", "posix"});
  EXPECT_EQ(innocent.exit, 0) << innocent.Describe();
  EXPECT_TRUE(Contains(innocent.out, "locks: OPEN")) << innocent.Describe();
  const RunResult none = RunProbe(flags, {"hide-memory", "200", "drop"});
  EXPECT_EQ(Memory(none)["enforced"], !IsSampled(none)) << "NO-CONTROL\n" << none.Describe();
  EXPECT_EQ(UncountedOf(none), 0U) << "NO-CONTROL\n" << none.Describe();
  EXPECT_EQ(none.receipt["limits"].contains("uncounted_memory"), !IsSampled(none))
      << none.Describe();
  for (const char* how : {"posix", "description"}) {
    EXPECT_TRUE(Contains(RunOutside({"hold-locks", "100", how}).out, "locks: OPEN"))
        << "NO-CONTROL " << how;
    const RunResult result = RunProbe(flags, {"hold-locks", "100", how, "0", "20"});
    ExpectEnded(result, "limit.memory");
    EXPECT_EQ(Memory(result)["enforced"], !IsSampled(result)) << result.Describe();
    EXPECT_EQ(UncountedOf(result) > 0, !IsSampled(result)) << result.Describe();
    EXPECT_GT(Memory(result)["used"].get<uint64_t>() + UncountedOf(result), 64U << 20)
        << result.Describe();
  }
}

// Each half alone is below the cap.
TEST_P(ResourceEscape, RS_04_LocksCountTogetherWithOtherMemory) {
  const Strings flags = Flags({"--memory", "64MiB", "--cpu", "60s", "--wall", "60s"});
  for (const char* other : {"0", "40"}) {
    const RunResult innocent = RunProbe(flags, {"hold-locks", "4", "posix", other});
    EXPECT_TRUE(Contains(innocent.out, "locks: OPEN")) << "NO-CONTROL\n" << innocent.Describe();
    EXPECT_EQ(innocent.exit, 0) << innocent.Describe();
  }
  const RunResult locks = RunProbe(flags, {"hold-locks", "32", "posix", "0"});
  EXPECT_EQ(locks.exit, 0) << "NO-CONTROL\n" << locks.Describe();
  ExpectEnded(RunProbe(flags, {"hold-locks", "32", "posix", "40", "20"}), "limit.memory");
}

TEST_P(ResourceEscape, RS_04_MemoryInQueuesThatCannotBeAsked) {
  const Strings flags =
      Flags({"--memory", "64MiB", "--open-files", "400", "--cpu", "60s", "--wall", "60s"});
  const RunResult innocent = RunProbe(flags, {"hide-queued", "200", "drop"});
  EXPECT_EQ(innocent.exit, 0) << innocent.Describe();
  EXPECT_TRUE(Contains(innocent.out, "queue: OPEN")) << innocent.Describe();
  struct Way {
    const char* how;
    bool needs_network;  // refused at the process level, where the network is the host's
  };
  for (const Way& way : {Way{"closed", false},
                         {"table", false},
                         {"table-pipes", false},
                         {"shadow", false},
                         {"empty", true},
                         {"senders", true},
                         {"backlog", true},
                         {"udp", true},
                         {"events", true},
                         {"netlink", true},
                         {"tcp", true}}) {
    SCOPED_TRACE(way.how);
    // Half a million files have to come and go for the events.
    RunOptions patient;
    patient.timeout = Seconds(300);
    const RunResult outside = RunOutside({"hide-queued", "200", way.how}, patient);
    EXPECT_TRUE(Contains(outside.out, "queue: OPEN")) << "NO-CONTROL\n" << outside.Describe();
    // Beside all of /usr there are no AF_UNIX datagrams. The runtime base is single files, and a copy of the probe.
    const bool datagrams = way.how == std::string("empty") || way.how == std::string("senders");
    // As long as an emulated machine takes to look. A call that is found out is ended sooner.
    const std::string seconds = way.how == std::string("tcp") ? "1" : "10";
    const RunResult result =
        datagrams && container()
            ? RunCopiedProbe(flags, "hide-queued 200 " + std::string(way.how) + " " + seconds)
            : RunProbe(flags, {"hide-queued", "200", way.how, seconds});
    if (Contains(result.out, "queue: REFUSED") && result.exit == 0) {
      // A memory cgroup refuses a buffer that does not fit, or ends the call: both hold.
      const bool counted =
          !Contains(result.receipt["isolation"]["missing"].dump(), "cgroup-memory");
      const bool full = Contains(result.out, "ENOBUFS") || Contains(result.out, "ENOMEM");
      const bool inet = way.how == std::string("udp") || way.how == std::string("tcp");
      EXPECT_TRUE((counted && full) || (way.needs_network && (!container() || inet)))
          << way.how << "\n"
          << result.Describe();
      continue;
    }
    if (way.how == std::string("tcp") && container() && Contains(result.out, "queue: OPEN")) {
      // The kernel takes the bytes and keeps fewer of them, below the cap that counts them.
      EXPECT_FALSE(Contains(result.receipt["isolation"]["missing"].dump(), "cgroup-memory"));
      EXPECT_LE(result.receipt["limits"]["memory"]["used"].get<uint64_t>(), 64U << 20)
          << result.Describe();
      continue;
    }
    ExpectEnded(result, "limit.memory");
    if (way.how == std::string("netlink")) {
      EXPECT_EQ(Memory(result)["enforced"], !IsSampled(result)) << result.Describe();
      EXPECT_EQ(UncountedOf(result) > 0, !IsSampled(result)) << result.Describe();
    }
  }
}

// A pipe holds what it was given beyond its own size, and no process has it.
TEST_P(ResourceEscape, RS_04_PagesAreNotGivenToPipes) {
  EXPECT_TRUE(Contains(RunOutside({"hide-queued", "20", "gift"}).out, "queue: OPEN"))
      << "NO-CONTROL";
  const RunResult result = RunProbe(Flags(), {"hide-queued", "20", "gift"});
  EXPECT_TRUE(Contains(result.out, "queue: REFUSED errno=EPERM")) << result.Describe();
}

// The supervisor looks at what is in flight. A socket can make each look bring a descriptor: none of them may stay.
TEST_P(ResourceEscape, RS_09_LookingAtAQueueKeepsNoDescriptor) {
  const RunResult outside = RunOutside({"pass-pidfd", "peek"});
  if (Contains(outside.out, "pidfd: REFUSED errno=ENOPROTOOPT")) {
    GTEST_SKIP() << "SO_PASSPIDFD needs Linux 6.5";
  }
  // One for the message's own descriptor and one for the pidfd, twenty times.
  ASSERT_TRUE(Contains(outside.out, "peek: OPEN 4")) << "NO-CONTROL: " << outside.out;
  TempDir dir;
  const std::string shared = dir.MakeDir("shared", 0777);
  Strings words = {CofferPath(), "run", "--level", level()};
  if (container() || !IsRoot()) {  // what is watched for files in flight, beside memory
    words.insert(words.end(), {"--rw", container() ? shared + ":/data" : shared});
  }
  words.insert(words.end(), {"--", ProbePath(), "pass-pidfd"});
  Background live(words);
  ASSERT_TRUE(live.WaitForOutput("ready")) << live.err();
  const auto descriptors = [&] {
    const std::string path = "/proc/" + std::to_string(live.pid()) + "/fd";
    return std::distance(std::filesystem::directory_iterator(path), {});
  };
  const auto before = descriptors();
  usleep(2'000'000);  // some two hundred looks
  EXPECT_LE(descriptors(), before + 16) << "the supervisor keeps what it looked at";
  live.Signal(SIGTERM);
  live.Wait(Seconds(20));
}

TEST_P(ResourceEscape, RS_12_ChildrenThatTheKernelForgets) {
  const RunResult outside = RunOutside({"spin-forgotten", "5", "200"});
  EXPECT_TRUE(Contains(outside.out, "spin: OPEN")) << "NO-CONTROL";
  for (const char* millis : {"3", "5", "40"}) {
    const RunResult result =
        RunProbe(Flags({"--cpu", "1s", "--wall", "50s"}), {"spin-forgotten", millis, "100000"});
    ExpectEnded(result, "limit.cpu");
  }
  // Half a second of such children is within the cap, and is about what the receipt says.
  const RunResult few =
      RunProbe(Flags({"--cpu", "50s", "--wall", "50s"}), {"spin-forgotten", "5", "100"});
  EXPECT_EQ(few.exit, 0) << few.Describe();
  EXPECT_GE(few.receipt["limits"]["cpu"]["used"], 200'000'000) << few.Describe();
  // No more than all processors can have worked meanwhile. Starting a hundred children may cost more than they use.
  const auto wall = few.receipt["limits"]["wall"]["used"].get<int64_t>();
  EXPECT_LE(few.receipt["limits"]["cpu"]["used"],
            wall * std::thread::hardware_concurrency() + 200'000'000)
      << few.Describe();
}

TEST_P(ResourceEscape, RS_08_WhatOrphansWrite) {
  TempDir dir;
  const std::string shared = dir.MakeDir("shared", 0777);
  const bool workspace = !container() && IsRoot();
  const std::string at = workspace ? "." : container() ? "/data" : shared;
  Strings flags = Flags({"--io", "16MiB"});
  if (!workspace) {
    flags.insert(flags.end(), {"--rw", container() ? shared + ":/data" : shared});
  }
  EXPECT_TRUE(Contains(RunOutside({"write-orphaned", shared, "64"}).out, "write: OPEN"))
      << "NO-CONTROL";
  const RunResult few = RunProbe(flags, {"write-orphaned", at, "8"});
  EXPECT_EQ(few.exit, 0) << few.Describe();
  EXPECT_GE(few.receipt["limits"]["io"]["used"], 8 << 20) << few.Describe();
  const RunResult result = RunProbe(flags, {"write-orphaned", at, "64"});
  EXPECT_EQ(result.exit, 122) << result.Describe();
  EXPECT_EQ(result.ErrorClass(), "limit.disk") << result.Describe();
  EXPECT_TRUE(Breached(result, "io")) << result.Describe();
}

TEST_P(ResourceEscape, RS_21_TreesOfAnyDepth) {
  TempDir dir;
  const std::string shared = dir.MakeDir("shared", 0777);
  const bool mount = container() || !IsRoot();
  for (const char* levels : {"80", "400"}) {
    const std::vector<std::string> before = CofferTraces();
    const RunResult own =
        RunProbe(Flags({"--cpu", "60s", "--wall", "60s"}), {"dig", ".", levels, "200"});
    EXPECT_EQ(own.exit, 0) << own.Describe();
    EXPECT_TRUE(Contains(own.out, "dig: OPEN")) << "NO-CONTROL: it is not that deep\n"
                                                << own.Describe();
    EXPECT_EQ(StayingTraces(before), std::vector<std::string>()) << levels;
    if (!mount) {
      continue;
    }
    const Strings flags =
        Flags({"--cpu", "60s", "--wall", "60s", "--rw", container() ? shared + ":/data" : shared});
    const RunResult result =
        RunProbe(flags, {"dig", container() ? "/data" : shared, levels, "200"});
    EXPECT_EQ(result.exit, 0) << result.Describe();
    EXPECT_TRUE(Contains(result.out, "dig: OPEN")) << result.Describe();
    // A call that finds such a tree can start, and is told what grows.
    const RunResult again = RunProbe(flags, {"exit", "0"});
    EXPECT_EQ(again.exit, 0) << again.Describe();
    EXPECT_LT(again.receipt["limits"]["disk"]["used"], 1 << 20) << again.Describe();
    ASSERT_TRUE(RemoveTree(AT_FDCWD, shared).ok());
    (void)dir.MakeDir("shared", 0777);
  }
}

TEST_P(ResourceEscape, RS_21_ClosedDirectoriesAreRemoved) {
  const std::vector<std::string> before = CofferTraces();
  const RunResult result = RunProbe(Flags(), {"close-dirs", "."});
  // A sample may come between the first closed door and the last.
  EXPECT_TRUE(Contains(result.out, "close: OPEN") || Contains(result.err, "is closed, so"))
      << "NO-CONTROL: nothing is closed\n"
      << result.Describe();
  if (container() || IsRoot()) {
    EXPECT_EQ(result.exit, 0) << result.Describe();
  } else {
    // The workspace is a directory of the host, and what is behind a closed door is not known.
    ExpectEnded(result, "limit.disk");
    EXPECT_TRUE(Contains(result.err, "closed")) << result.Describe();
  }
  EXPECT_EQ(StayingTraces(before), std::vector<std::string>());
}

TEST_P(ResourceEscape, RS_22_CapsTooSmallToStart) {
  for (const Strings& cap : {Strings{"--memory", "512"},
                             {"--memory", "4KiB"},
                             {"--memory", "512KiB"},
                             {"--open-files", "1"},
                             {"--open-files", "3"}}) {
    const RunResult result = RunProbe(Flags(cap), {"exit", "0"});
    EXPECT_EQ(result.exit, 120) << cap[1] << "\n" << result.Describe();
    EXPECT_EQ(result.ErrorClass(), "policy.limit") << result.Describe();
    EXPECT_TRUE(Contains(result.err, "the least is")) << result.Describe();
  }
  for (const Strings& cap : {Strings{"--memory", "1MiB"},
                             {"--open-files", "4"},
                             {"--processes", "1"},
                             {"--disk", "1"},
                             {"--tmp", "1"},
                             {"--output", "1"},
                             {"--io", "1"}}) {
    const RunResult result = RunProbe(Flags(cap), {"exit", "0"});
    EXPECT_EQ(result.exit, 0) << "NO-CONTROL: the least does not start either: " << cap[0] << " "
                              << cap[1] << "\n"
                              << result.Describe();
  }
  // A program that needs more than the least is ended by its cap, and coffer lives to say so.
  const RunResult large = RunProbe(Flags({"--memory", "1MiB"}), {"eat-memory", "64"});
  ExpectEnded(large, "limit.memory");
}

TEST_P(ResourceEscape, RS_07_ManyFiles) {
  TempDir dir;
  const RunResult outside =
      RunOutside({"many-files", dir.path(), "21000"}, {.timeout = Seconds(300)});
  EXPECT_GT(Figure(outside.out, "made"), 20000) << "NO-CONTROL";
  const RunResult result = RunProbe(Flags({"--cpu", "60s", "--wall", "60s"}),
                                    {"many-files", ".", "100000"}, {.timeout = Seconds(90)});
  EXPECT_FALSE(Contains(result.out, "create: OPEN")) << result.Describe();
  if (!container()) {
    // A watch, not a wall: what was made between two looks is there, and then the call ends.
    ExpectEnded(result, "limit.disk");
    return;
  }
  EXPECT_GT(Figure(result.out, "made"), 100) << result.Describe();
  EXPECT_LE(Figure(result.out, "made"), 20000) << result.Describe();
}

TEST_P(ResourceEscape, RS_09_OpenFiles) {
  RunOptions plain;
  plain.in_child = [] {
    const rlimit files = {1000, 1000};
    setrlimit(RLIMIT_NOFILE, &files);
  };
  EXPECT_GT(Figure(RunOutside({"fds-bomb"}, plain).out, "opened"), 900) << "NO-CONTROL";
  const RunResult result = RunProbe(Flags({"--open-files", "50"}), {"fds-bomb"});
  EXPECT_EQ(Figure(result.out, "opened"), 47) << "50 with stdin, stdout and stderr\n"
                                              << result.Describe();
  EXPECT_TRUE(Contains(result.out, "EMFILE")) << result.Describe();
}

TEST_P(ResourceEscape, RS_09_DescriptorsInFlight) {
  RunOptions plain;
  plain.in_child = [] {
    const rlimit files = {1000, 1000};
    setrlimit(RLIMIT_NOFILE, &files);
  };
  EXPECT_GT(Figure(RunOutside({"scm-bomb"}, plain).out, "parked"), 300) << "NO-CONTROL";
  const RunResult result = RunProbe(Flags(), {"scm-bomb"});
  EXPECT_GT(Figure(result.out, "parked") + (container() ? 0 : 1), 0) << result.Describe();
  ExpectRan(result);
  EXPECT_LE(Figure(result.out, "parked"), 300) << "descriptors hide in sockets\n"
                                               << result.Describe();
}

// The most memory that any process we have waited for had, theirs included, in KiB.
long PeakOfChildren() {
  rusage usage = {};
  getrusage(RUSAGE_CHILDREN, &usage);
  return usage.ru_maxrss;
}

TEST_P(ResourceEscape, RS_10_OutputFlood) {
  EXPECT_EQ(RunOutside({"flood", "1000000", "1"}).out.size(), 1000000U) << "NO-CONTROL";
  for (const char* fd : {"1", "2"}) {
    const auto flood = [&](const char* bytes) {
      return RunProbe(Flags({"--output", "64KiB"}), {"flood", bytes, fd}, {.timeout = Seconds(90)});
    };
    (void)flood("1000000");
    const long usual = PeakOfChildren();
    const RunResult result = flood("500000000");
    EXPECT_LT(result.out.size() + result.err.size(), 80000U) << "the cap did not hold";
    EXPECT_GE(result.out.size() + result.err.size(), 60000U) << "output below the cap was lost";
    ASSERT_TRUE(result.receipt.is_object()) << result.Describe();
    EXPECT_EQ(result.receipt["output"].value("truncated", false), true) << result.Describe();
    EXPECT_TRUE(result.exit == 0 || result.exit == 141) << result.Describe();
    EXPECT_LE(PeakOfChildren(), usual + 32L * 1024) << "the flood was kept in memory";
  }
}

TEST_P(ResourceEscape, RS_12_ProcessorTimeOfTheWholeTree) {
  EXPECT_GE(RunOutside({"spin", "1", "2"}).took.count(), 1.9) << "NO-CONTROL";
  for (const Strings& verb : {Strings{"spin", "1", "60"}, {"spin", "4", "60"}, {"spin-chain"}}) {
    const RunResult result = RunProbe(Flags({"--cpu", "1s", "--wall", "20s"}), verb);
    ExpectEnded(result, "limit.cpu");
  }
}

TEST_P(ResourceEscape, RS_13_WhatDoesNotWantToDie) {
  {
    Background stubborn({ProbePath(), "stubborn", NewToken()});
    ASSERT_TRUE(stubborn.WaitForOutput("ready"));
    stubborn.Signal(SIGTERM);
    EXPECT_FALSE(WaitUntil([&] { return stubborn.ended(); }, Seconds(0.5)))
        << "NO-CONTROL: it dies when it is asked to";
  }
  for (const char* verb : {"stubborn", "stop-self", "wait"}) {
    const std::string token = NewToken();
    const RunResult result = RunProbe(Flags({"--wall", "1s", "--cpu", "60s"}), {verb, token});
    ExpectEnded(result, "limit.wall");
    EXPECT_FALSE(result.timed_out) << verb << "\n" << result.Describe();
    EXPECT_TRUE(FindProcesses(token).empty())
        << verb << ": a kill is confirmed before the call returns";
  }
}

TEST_P(ResourceEscape, RS_13_ASwarmEndsAtItsWallTime) {
  EXPECT_TRUE(Contains(RunOutside({"swarm", "4", "100", "3"}).out, "swarm: OPEN")) << "NO-CONTROL";
  for (const char* mappings : {"10", "20000"}) {
    const RunResult result =
        RunProbe(Flags({"--wall", "2s", "--cpu", "600s", "--memory", "2GiB", "--processes", "100"}),
                 {"swarm", "30", mappings, "40"});
    // Without a cgroup a slow machine may see first that it cannot count what the swarm holds.
    const bool uncounted =
        IsSampled(result) && Contains(result.err, "faster than they can be counted");
    ExpectEnded(result, uncounted ? "limit.memory" : "limit.wall");
    // By itself it takes 40 s. What is added to the wall time is what thirty address spaces take to be torn down: with
    // 20000 mappings each some seconds, on a machine that is slow or busy.
    EXPECT_LT(result.took.count(), 30.0) << result.Describe();
  }
}

TEST_P(ResourceEscape, RS_13_AStoppedTreeDies) {
  RunOptions apart;
  apart.in_child = [] { setsid(); };  // "0" is the process group
  apart.timeout = Seconds(1);
  EXPECT_TRUE(RunProgram({"sh", "-c", "kill -STOP 0; sleep 0"}, apart).timed_out) << "NO-CONTROL";
  const std::string token = NewToken();
  const RunResult result =
      RunCoffer(Flags({"--wall", "1s"}), {"sh", "-c", "kill -STOP 0; sleep 100", token});
  ExpectEnded(result, "limit.wall");
  EXPECT_TRUE(FindProcesses(token).empty());
}

TEST_P(ResourceEscape, RS_14_OrphansAreReaped) {
  NothingIsAttacked("init reaps, so that orphans do not use up the cap of processes");
  const RunResult result = RunProbe(Flags({"--processes", "12", "--wall", "300s", "--cpu", "300s"}),
                                    {"zombies", "300"}, {.timeout = Seconds(330)});
  EXPECT_GE(Figure(result.out, "orphans"), 280) << result.Describe();
}

TEST_P(ResourceEscape, RS_17_Priorities) {
  const RunResult result = RunProbe(Flags(), {"priorities"});
  const auto inside = ParseAttempts(result.out);
  const auto outside = ParseAttempts(RunOutside({"priorities"}).out);
  for (const char* label : {"nice", "sched-fifo", "sched-deadline", "ioprio-rt", "oom-score",
                            "rlimit-nproc", "rlimit-core", "rlimit-nofile", "mlockall"}) {
    ASSERT_TRUE(inside.contains(label)) << result.Describe();
    EXPECT_EQ(inside.at(label).state, Attempt::State::kRefused) << label << "\n"
                                                                << result.Describe();
  }
  EXPECT_EQ(outside.at("mlockall").state, Attempt::State::kOpen) << "NO-CONTROL";
  EXPECT_EQ(outside.at("nice").state == Attempt::State::kOpen, IsRoot())
      << "NO-CONTROL: it should open for root, and for root only";
}

TEST_P(ResourceEscape, RS_18_CgroupsAreOutOfReach) {
  EXPECT_TRUE(Contains(RunOutside({"list", "/sys/fs/cgroup"}).out, "entry ")) << "NO-CONTROL";
  const RunResult result =
      RunProbe(Flags(), {"open-write", "/sys/fs/cgroup/memory/tasks", "/sys/fs/cgroup/cgroup.procs",
                         "/sys/fs/cgroup/unified/cgroup.procs", "/sys/fs/cgroup/pids/tasks"});
  EXPECT_EQ(ParseAttempts(result.out).size(), 4U) << result.Describe();
  EXPECT_FALSE(Contains(result.out, "OPEN")) << result.Describe();
  if (container()) {
    const RunResult own = RunProbe(Flags(), {"open-read", "/proc/self/cgroup"});
    ExpectRan(own);
    EXPECT_FALSE(Contains(own.out, "coffer-")) << "the host's cgroup path is visible\n"
                                               << own.Describe();
  }
}

TEST_P(ResourceEscape, RS_20_NoCoreAnywhere) {
  TempDir dir;
  const std::string shared = dir.MakeDir("shared", 0777);
  if (!container() && IsRoot()) {
    EXPECT_EQ(RunProbe(Flags({"--rw", shared}), {"exit", "0"}).exit, 120) << "no mounts as root";
    return;
  }
  const std::string at = container() ? "/data" : shared;
  RunOptions here = {.cwd = shared};
  RunOutside({"crash", "1"}, here);
  if (ReadFile("/proc/sys/kernel/core_pattern") == "core\n") {
    EXPECT_FALSE(std::filesystem::is_empty(shared)) << "NO-CONTROL: no core outside either";
    for (const auto& entry : std::filesystem::directory_iterator(shared)) {
      std::filesystem::remove(entry.path());
    }
  }
  for (int i = 0; i < 5; ++i) {
    const RunResult result =
        RunProbe(Flags({"--rw", container() ? shared + ":/data" : shared, "--cwd", at}),
                 {"crash", "32"}, {.cwd = dir.path()});
    EXPECT_EQ(result.exit, 128 + SIGSEGV) << result.Describe();
  }
  EXPECT_TRUE(std::filesystem::is_empty(shared));
  EXPECT_FALSE(Exists(dir / "core"));
}

// A dump that is piped is not kept back by 0, only by 1. No test can set the host's core_pattern, so it is the limit that
// is looked at: a program that lowers it believes that it did.
TEST_P(ResourceEscape, RS_20_TheCoreLimitStaysAtOne) {
  struct rlimit host{};
  ASSERT_EQ(::getrlimit(RLIMIT_CORE, &host), 0);
  const std::string kept = host.rlim_max == 0 ? "limit 0" : "limit 1";  // 0 cannot be raised
  const RunResult outside = RunOutside({"core-limit"});
  EXPECT_TRUE(Contains(outside.out, "answers 0 0 0, limit 0"))
      << "NO-CONTROL" << outside.Describe();
  for (const char* profile : {"strict", "default", "compat"}) {
    const RunResult result = RunProbe(Flags({"--seccomp", profile}), {"core-limit"});
    EXPECT_TRUE(Contains(result.out, "answers 0 0 -1, " + kept)) << profile << result.Describe();
  }
}

INSTANTIATE_TEST_SUITE_P(Level, ResourceEscape, ::testing::Values("container", "process"),
                         LevelTestName);

}  // namespace
}  // namespace coffer::test
