// SPDX-License-Identifier: Apache-2.0
#include "limits/tree_scan.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/remove_tree.h"
#include "test_support.h"

namespace coffer::limits {
namespace {

using std::chrono::seconds;

UniqueFd OpenDir(const TempDir& dir) {
  return UniqueFd(::open(dir.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

// ext4 allocates late; what a call wrote is known once it is on its way to the disk.
void PutSynced(const TempDir& dir, const std::string& name, size_t bytes) {
  dir.Write(name, std::string(bytes, 'x'));
  const UniqueFd fd(::open((dir.path() + "/" + name).c_str(), O_RDONLY | O_CLOEXEC));
  ::fsync(fd.get());
}

TEST(ScanDisk, SumsBytesAndInodesOfTheWholeTree) {
  TempDir dir;
  PutSynced(dir, "a", 1 << 20);
  PutSynced(dir, "deep/er/b", 1 << 20);
  const Result<DiskUse> use = ScanDisk(OpenDir(dir).get(), seconds(10));
  ASSERT_TRUE(use.ok());
  EXPECT_TRUE(use->complete());
  EXPECT_EQ(use->inodes, 4U);
  EXPECT_GE(use->bytes, 2U << 20);
  EXPECT_LT(use->bytes, 3U << 20);
}

TEST(ScanDisk, CountsALinkedFileOnceAndFollowsNoSymlink) {
  TempDir dir;
  TempDir outside;
  PutSynced(dir, "a", 1 << 20);
  PutSynced(outside, "big", 4 << 20);
  std::filesystem::create_hard_link(dir.path() + "/a", dir.path() + "/b");
  std::filesystem::create_symlink(outside.path(), dir.path() + "/way-out");
  const Result<DiskUse> use = ScanDisk(OpenDir(dir).get(), seconds(10));
  ASSERT_TRUE(use.ok());
  EXPECT_EQ(use->inodes, 2U);
  EXPECT_LT(use->bytes, 2U << 20);
}

TEST(ScanDisk, SaysWhenItDidNotFinish) {
  TempDir dir;
  dir.Write("a/b/c", "x");
  const Result<DiskUse> use = ScanDisk(OpenDir(dir).get(), Nanos(0));
  ASSERT_TRUE(use.ok());
  EXPECT_EQ(use->end, ScanEnd::kOutOfTime);
}

// Made deep by renaming, with names so long that no path reaches the bottom. In memory: a disk may take milliseconds
// for each directory that is removed afterwards.
TEST(ScanDisk, SumsTreesOfAnyDepth) {
  for (const int levels : {80, 3000, 10000}) {
    std::string path = "/dev/shm/coffer-deep-XXXXXX";
    ASSERT_NE(::mkdtemp(path.data()), nullptr);
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ::mkdirat(fd.get(), "chain", 0700);
    for (int i = 1; i < levels; ++i) {
      ::mkdirat(fd.get(), "next", 0700);
      const UniqueFd next(::openat(fd.get(), "next", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      ::mkdirat(next.get(), "beside", 0700);
      ASSERT_EQ(::renameat(fd.get(), "chain", next.get(), std::string(255, 'd').c_str()), 0);
      ASSERT_EQ(::renameat(fd.get(), "next", fd.get(), "chain"), 0);
    }
    const Result<DiskUse> use = ScanDisk(fd.get(), seconds(30));
    ASSERT_TRUE(use.ok());
    EXPECT_TRUE(use->complete()) << levels;
    EXPECT_EQ(use->inodes, 2U * static_cast<unsigned>(levels) - 1);
    EXPECT_TRUE(EmptyTree(fd.get()).ok());
    ::rmdir(path.c_str());
  }
}

TEST(ScanDisk, AClosedDirectoryIsNotEmpty) {
  if (::geteuid() == 0) {
    GTEST_SKIP() << "nothing is closed to root";
  }
  for (const mode_t mode : {0U, 0100U, 0400U}) {
    TempDir dir;
    dir.Write("closed/hidden", "x");
    ::chmod((dir.path() + "/closed").c_str(), mode);
    const Result<DiskUse> use = ScanDisk(OpenDir(dir).get(), seconds(10));
    ASSERT_TRUE(use.ok());
    EXPECT_EQ(use->end, ScanEnd::kUnreadable) << mode;
    ::chmod((dir.path() + "/closed").c_str(), 0700);
    EXPECT_TRUE(ScanDisk(OpenDir(dir).get(), seconds(10))->complete()) << "NO-CONTROL";
  }
}

}  // namespace
}  // namespace coffer::limits
