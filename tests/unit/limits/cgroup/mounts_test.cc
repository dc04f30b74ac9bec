// SPDX-License-Identifier: Apache-2.0
#include "limits/cgroup/mounts.h"

#include <gtest/gtest.h>

namespace coffer::limits {
namespace {

TEST(ParseControllers, KnowsBothNamesOfIo) {
  EXPECT_EQ(ParseControllers("rw,blkio", ','), Bit(Controller::kIo));
  EXPECT_EQ(ParseControllers("cpuset cpu io memory pids\n", ' '),
            Bit(Controller::kCpu) | Bit(Controller::kIo) | Bit(Controller::kMemory) |
                Bit(Controller::kPids));
  EXPECT_EQ(ParseControllers("", ' '), 0U);
  EXPECT_EQ(ParseControllers("memoryx,xpids", ','), 0U);
}

TEST(ParseSelfCgroup, TellsV1V2AndNamedHierarchiesApart) {
  const auto all =
      ParseSelfCgroup("4:cpu,cpuacct:/a:b\n1:name=systemd:/init.scope\n0::/user.slice/x\n");
  ASSERT_EQ(all.size(), 3U);
  EXPECT_FALSE(all[0].v2);
  EXPECT_EQ(all[0].controllers, Bit(Controller::kCpu) | Bit(Controller::kCpuacct));
  EXPECT_EQ(all[0].path, "/a:b");
  EXPECT_FALSE(all[1].v2);
  EXPECT_EQ(all[1].controllers, 0U);
  EXPECT_TRUE(all[2].v2);
  EXPECT_EQ(all[2].path, "/user.slice/x");
}

TEST(ParseSelfCgroup, LeavesOutWhatDoesNotParse) {
  EXPECT_TRUE(ParseSelfCgroup("").empty());
  EXPECT_TRUE(ParseSelfCgroup("garbage\n\n4:memory\n5:pids:relative\n").empty());
}

TEST(ParseMountinfo, TakesOnlyCgroupsAndDecodesNames) {
  const auto all = ParseMountinfo(
      "25 1 0:23 / /sys rw,nosuid shared:2 - sysfs sysfs rw\n"
      "34 33 0:31 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 master:1 - cgroup cgroup "
      "rw,cpu,cpuacct\n"
      "35 33 0:32 /docker/ab /mnt/with\\040space\\134x rw - cgroup cgroup rw,memory\n"
      "36 33 0:33 / /sys/fs/cgroup/unified rw shared:5 - cgroup2 cgroup2 rw,nsdelegate\n"
      "37 33 0:34 / /fuse rw - cgroupfsfuse x rw\n"
      "short - cgroup\n");
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].mount_point, "/sys/fs/cgroup/cpu,cpuacct");
  EXPECT_EQ(all[0].controllers, Bit(Controller::kCpu) | Bit(Controller::kCpuacct));
  EXPECT_EQ(all[1].mount_point, "/mnt/with space\\x");
  EXPECT_EQ(all[1].root, "/docker/ab");
  EXPECT_TRUE(all[2].v2);
}

TEST(DirInMount, FollowsTheMountsRoot) {
  const CgroupMount whole{false, 0, "/", "/cg"};
  EXPECT_EQ(DirInMount(whole, "/"), "/cg");
  EXPECT_EQ(DirInMount(whole, "/a/b"), "/cg/a/b");
  const CgroupMount part{false, 0, "/docker/ab", "/cg"};
  EXPECT_EQ(DirInMount(part, "/docker/ab"), "/cg");
  EXPECT_EQ(DirInMount(part, "/docker/ab/c"), "/cg/c");
  EXPECT_EQ(DirInMount(part, "/docker/abc"), "");
  EXPECT_EQ(DirInMount(part, "/other"), "");
}

TEST(DirInMount, RefusesWhatLiesOutsideTheNamespace) {
  EXPECT_EQ(DirInMount({false, 0, "/", "/cg"}, "/../x"), "");
  EXPECT_EQ(DirInMount({false, 0, "/..", "/cg"}, "/"), "");
}

}  // namespace
}  // namespace coffer::limits
