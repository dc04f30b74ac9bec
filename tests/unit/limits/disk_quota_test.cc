// SPDX-License-Identifier: Apache-2.0
#include "limits/disk_quota.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "test_support.h"

namespace coffer::limits {
namespace {

using std::chrono::seconds;

UniqueFd OpenDir(const TempDir& dir) {
  return UniqueFd(::open(dir.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

// ext4 allocates late; what a call wrote is known once it is on its way to the disk.
void PutSynced(const TempDir& dir, const std::string& name, size_t bytes) {
  dir.Put(name, std::string(bytes, 'x'));
  const UniqueFd fd(::open((dir.path() + "/" + name).c_str(), O_RDONLY | O_CLOEXEC));
  ::fsync(fd.get());
}

TEST(ScanDisk, SumsBytesAndInodesOfTheWholeTree) {
  TempDir dir;
  PutSynced(dir, "a", 1 << 20);
  PutSynced(dir, "deep/er/b", 1 << 20);
  const UniqueFd fd = OpenDir(dir);
  const Result<DiskUse> use = ScanDisk(fd.get(), seconds(10));
  ASSERT_TRUE(use.ok());
  EXPECT_TRUE(use->complete);
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
  const UniqueFd fd = OpenDir(dir);
  const Result<DiskUse> use = ScanDisk(fd.get(), seconds(10));
  ASSERT_TRUE(use.ok());
  EXPECT_EQ(use->inodes, 2U);
  EXPECT_LT(use->bytes, 2U << 20);
}

TEST(ScanDisk, SaysWhenItDidNotFinish) {
  TempDir dir;
  dir.Put("a/b/c", "x");
  const UniqueFd fd = OpenDir(dir);
  const Result<DiskUse> use = ScanDisk(fd.get(), Nanos(0));
  ASSERT_TRUE(use.ok());
  EXPECT_FALSE(use->complete);
}

TEST(ScanDisk, ATreeThatIsTooDeepIsNotComplete) {
  TempDir dir;
  std::string path = dir.path();
  for (int i = 0; i < 140; ++i) {
    path += "/d";
  }
  std::filesystem::create_directories(path);
  const UniqueFd fd = OpenDir(dir);
  EXPECT_FALSE(ScanDisk(fd.get(), seconds(10))->complete);
  EXPECT_FALSE(DiskWatch::Start(fd.get(), {}).ok());
}

TEST(DiskWatch, CountsOnlyWhatWasAdded) {
  TempDir dir;
  PutSynced(dir, "before", 4 << 20);
  policy::Limits caps;
  caps.disk = 2 << 20;
  const UniqueFd fd = OpenDir(dir);
  Result<DiskWatch> watch = DiskWatch::Start(fd.get(), caps);
  ASSERT_TRUE(watch.ok());
  EXPECT_FALSE(watch->Check({})->over);
  PutSynced(dir, "more", 1 << 20);
  Result<DiskWatch::Growth> growth = watch->Check({});
  ASSERT_TRUE(growth.ok());
  EXPECT_FALSE(growth->over);
  EXPECT_GE(growth->bytes, 1U << 20);
  EXPECT_EQ(growth->inodes, 1U);
  PutSynced(dir, "too-much", 2 << 20);
  EXPECT_TRUE(watch->Check({})->over);
}

TEST(DiskWatch, CountsInodes) {
  TempDir dir;
  policy::Limits caps;
  caps.inodes = 10;
  const UniqueFd fd = OpenDir(dir);
  Result<DiskWatch> watch = DiskWatch::Start(fd.get(), caps);
  ASSERT_TRUE(watch.ok());
  for (int i = 0; i < 10; ++i) {
    dir.Put(std::to_string(i), "");
  }
  EXPECT_FALSE(watch->Check({})->over);
  dir.Put("eleventh", "");
  EXPECT_TRUE(watch->Check({})->over);
}

TEST(DiskWatch, SeesFilesDeletedWhileOpen) {
  TempDir dir;
  policy::Limits caps;
  caps.disk = 1 << 20;
  const UniqueFd fd = OpenDir(dir);
  Result<DiskWatch> watch = DiskWatch::Start(fd.get(), caps);
  ASSERT_TRUE(watch.ok());
  PutSynced(dir, "hidden", 2 << 20);
  const std::string path = dir.path() + "/hidden";
  const UniqueFd held(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ::unlink(path.c_str());
  const pid_t self = ::getpid();
  EXPECT_FALSE(watch->Check({})->over) << "no directory shows it";
  EXPECT_TRUE(watch->Check({&self, 1})->over);
}

TEST(NextDiskCheck, ComesSoonerAsTheCapComesNearAndNeverKeepsTheDiskBusy) {
  using std::chrono::milliseconds;
  constexpr uint64_t kMiB = 1 << 20;
  EXPECT_EQ(NextDiskCheck(0, 4096 * kMiB, Nanos(0)), milliseconds(250));
  EXPECT_EQ(NextDiskCheck(0, 100 * kMiB, Nanos(0)), milliseconds(100)) << "a small cap is near";
  EXPECT_EQ(NextDiskCheck(50 * kMiB, 100 * kMiB, Nanos(0)), milliseconds(50));
  EXPECT_EQ(NextDiskCheck(99 * kMiB, 100 * kMiB, Nanos(0)), milliseconds(10));
  EXPECT_EQ(NextDiskCheck(1000 * kMiB, 100 * kMiB, Nanos(0)), milliseconds(10));
  EXPECT_EQ(NextDiskCheck(0, 0, Nanos(0)), milliseconds(10));
  EXPECT_EQ(NextDiskCheck(99, 100, seconds(1)), seconds(9));
}

}  // namespace
}  // namespace coffer::limits
