// SPDX-License-Identifier: Apache-2.0
#include "limits/rlimits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

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
  EXPECT_EQ(table.Find(RLIMIT_CORE), nullptr) << "set before the filter, which keeps it";
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

TEST(CountTasksOf, CountsAtLeastOurselves) {
  const Result<uint64_t> tasks = CountTasksOf(::getuid());
  ASSERT_TRUE(tasks.ok());
  EXPECT_GE(*tasks, 1U);
  EXPECT_EQ(*CountTasksOf(3999999999U), 0U);
}

}  // namespace
}  // namespace coffer::limits
