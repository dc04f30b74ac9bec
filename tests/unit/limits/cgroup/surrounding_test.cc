// SPDX-License-Identifier: Apache-2.0
#include "limits/cgroup/surrounding.h"

#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace coffer::limits {
namespace {

constexpr uint64_t kMiB = 1ULL << 20;

class SurroundingTest : public ::testing::Test {
 protected:
  test::TempDir root_;
};

TEST_F(SurroundingTest, TheTightestOfAllAboveCountsOnV2) {
  const std::string mounts =
      "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
  root_.Write("sys/fs/cgroup/system.slice/memory.max", "268435456\n");
  root_.Write("sys/fs/cgroup/system.slice/coffer.service/memory.max", "max\n");
  const std::string& root = root_.path();
  EXPECT_EQ(SurroundingMemoryOf("0::/system.slice/coffer.service\n", mounts, root), 256 * kMiB);
  EXPECT_EQ(SurroundingMemoryOf("0::/other\n", mounts, root), std::nullopt) << "the control";
}

TEST_F(SurroundingTest, AndOnV1) {
  const std::string mounts =
      "36 30 0:32 / /sys/fs/cgroup/memory rw,nosuid shared:13 - cgroup cgroup rw,memory\n";
  root_.Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  root_.Write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "134217728\n");
  const std::string& root = root_.path();
  EXPECT_EQ(SurroundingMemoryOf("5:memory:/box/coffer\n4:pids:/\n", mounts, root), 128 * kMiB);
  EXPECT_EQ(SurroundingMemoryOf("5:memory:/\n", mounts, root), std::nullopt);
}

}  // namespace
}  // namespace coffer::limits
