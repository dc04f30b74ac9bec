// SPDX-License-Identifier: Apache-2.0
#include "limits/rlimits.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test_support.h"

namespace coffer::limits {
namespace {

TEST(BuildRlimits, FollowsTheCaps) {
  policy::Limits caps;
  caps.cpu = std::chrono::milliseconds(1500);
  caps.processes = 7;
  caps.open_files = 50;
  caps.disk = 1 << 20;
  caps.tmp = 1 << 10;
  const RlimitTable table = BuildRlimits(caps, /*cgroup_memory=*/true);
  EXPECT_EQ(*table.Find(RLIMIT_CPU), (RlimitEntry{RLIMIT_CPU, 3, 4})) << "rounded up, and one more";
  EXPECT_EQ(table.Find(RLIMIT_NPROC)->hard, 8U);
  EXPECT_EQ(table.Find(RLIMIT_NOFILE)->hard, 50U);
  EXPECT_EQ(table.Find(RLIMIT_FSIZE)->hard, 1U << 20);
  EXPECT_EQ(BuildRlimits(caps, true, 0, /*host_files=*/false).Find(RLIMIT_FSIZE), nullptr)
      << "a tmpfs has a size of its own";
  EXPECT_EQ(table.Find(RLIMIT_STACK)->hard, RLIM_INFINITY) << "programs raise it";
  EXPECT_EQ(table.Find(RLIMIT_CORE)->hard, 0U);
  EXPECT_EQ(table.Find(RLIMIT_DATA), nullptr);
  EXPECT_EQ(BuildRlimits(caps, true, 100).Find(RLIMIT_NPROC)->hard, 108U);
}

TEST(BuildRlimits, TheMemoryBackstopStaysFarAboveTheCap) {
  policy::Limits caps;
  caps.memory = 64ULL << 20;
  EXPECT_EQ(BuildRlimits(caps, false).Find(RLIMIT_DATA)->hard, (64ULL << 20) + (1ULL << 30));
  caps.memory = 8ULL << 30;
  EXPECT_EQ(BuildRlimits(caps, false).Find(RLIMIT_DATA)->hard, 32ULL << 30);
  caps.memory = UINT64_MAX / 2;
  EXPECT_EQ(BuildRlimits(caps, false).Find(RLIMIT_DATA)->hard, RLIM_INFINITY);
}

// Runs `body` in a child that has applied the table; its exit status.
template <typename Body>
int InLimitedChild(const RlimitTable& table, Body body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (ApplyRlimits(table) != 0) {
      ::_exit(90);
    }
    ::_exit(body());
  }
  return WaitFor(pid);
}

TEST(ApplyRlimits, SetsEveryEntry) {
  const RlimitTable table = BuildRlimits({}, false);
  EXPECT_EQ(InLimitedChild(table,
                           [&] {
                             for (size_t i = 0; i < table.count; ++i) {
                               rlimit64 now{};
                               ::prlimit64(
                                   0, static_cast<__rlimit_resource>(table.entries[i].resource),
                                   nullptr, &now);
                               if (now.rlim_cur > table.entries[i].soft ||
                                   now.rlim_max > table.entries[i].hard) {
                                 return 1 + table.entries[i].resource;
                               }
                             }
                             return 0;
                           }),
            0);
}

TEST(ApplyRlimits, OpenFilesAreRefusedAtTheCap) {
  policy::Limits caps;
  caps.open_files = 20;
  const int status = InLimitedChild(BuildRlimits(caps, true), [] {
    int fd = 0;
    while ((fd = ::dup(0)) >= 0 && fd < 100) {
    }
    return fd < 0 && errno == EMFILE ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
}

TEST(ApplyRlimits, AFileBeyondTheCapIsRefused) {
  policy::Limits caps;
  caps.disk = 1 << 16;
  caps.tmp = 1;
  const auto write_past = [](bool ignore) {
    ::signal(SIGXFSZ, ignore ? SIG_IGN : SIG_DFL);
    const int fd = ::memfd_create("big", 0);
    static char block[1 << 16];
    const bool fits = ::write(fd, block, sizeof(block)) == sizeof(block);
    const bool refused = ::write(fd, block, 1) < 0 && errno == EFBIG;
    return fits && refused ? 0 : 1;
  };
  EXPECT_EQ(InLimitedChild(BuildRlimits(caps, true), [&] { return write_past(true); }), 0);
  EXPECT_EQ(WTERMSIG(InLimitedChild(BuildRlimits(caps, true), [&] { return write_past(false); })),
            SIGXFSZ);
}

TEST(ApplyRlimits, ACapAboveTheInheritedLimitIsLoweredToIt) {
  if (::geteuid() == 0) {
    // root may raise, so take that away the way an ordinary user lacks it
    RlimitTable lower;
    lower.entries[lower.count++] = {RLIMIT_NOFILE, 30, 30};
    RlimitTable higher;
    higher.entries[higher.count++] = {RLIMIT_NOFILE, 60, 60};
    EXPECT_EQ(InLimitedChild(lower,
                             [&] {
                               if (::setresuid(65534, 65534, 65534) != 0) {
                                 return 91;
                               }
                               rlimit now{};
                               const long applied = ApplyRlimits(higher);
                               ::getrlimit(RLIMIT_NOFILE, &now);
                               return applied == 0 && now.rlim_max == 30 ? 0 : 1;
                             }),
              0);
    return;
  }
  rlimit now{};
  ::getrlimit(RLIMIT_NOFILE, &now);
  RlimitTable higher;
  higher.entries[higher.count++] = {RLIMIT_NOFILE, now.rlim_max + 1, now.rlim_max + 1};
  EXPECT_EQ(InLimitedChild(higher, [] { return 0; }), 0);
}

TEST(ApplyRlimits, NamesWhatFailed) {
  RlimitTable table;
  table.entries[table.count++] = {9999, 1, 1};
  int failed = 0;
  EXPECT_EQ(ApplyRlimits(table, &failed), -EINVAL);
  EXPECT_EQ(failed, 9999);
}

TEST(CountTasksOf, CountsAtLeastOurselves) {
  const Result<uint64_t> tasks = CountTasksOf(::getuid());
  ASSERT_TRUE(tasks.ok());
  EXPECT_GE(*tasks, 1U);
  EXPECT_EQ(*CountTasksOf(3999999999U), 0U);
}

}  // namespace
}  // namespace coffer::limits
