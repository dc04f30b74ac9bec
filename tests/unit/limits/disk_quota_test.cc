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
  dir.Write(name, std::string(bytes, 'x'));
  const UniqueFd fd(::open((dir.path() + "/" + name).c_str(), O_RDONLY | O_CLOEXEC));
  ::fsync(fd.get());
}

TEST(DiskWatch, CountsOnlyWhatWasAdded) {
  TempDir dir;
  PutSynced(dir, "before", 4 << 20);
  policy::Limits caps;
  caps.disk = 2 << 20;
  const UniqueFd fd = OpenDir(dir);
  Result<DiskWatch> watch = DiskWatch::Start(fd.get(), caps);
  ASSERT_TRUE(watch.ok());
  EXPECT_FALSE(watch->Check({}, {}).over);
  PutSynced(dir, "more", 1 << 20);
  const DiskWatch::Growth growth = watch->Check({}, {});
  EXPECT_FALSE(growth.over);
  EXPECT_GE(growth.bytes, 1U << 20);
  EXPECT_EQ(growth.inodes, 1U);
  PutSynced(dir, "too-much", 2 << 20);
  EXPECT_TRUE(watch->Check({}, {}).over);
}

TEST(DiskWatch, CountsInodes) {
  TempDir dir;
  policy::Limits caps;
  caps.inodes = 10;
  const UniqueFd fd = OpenDir(dir);
  Result<DiskWatch> watch = DiskWatch::Start(fd.get(), caps);
  ASSERT_TRUE(watch.ok());
  for (int i = 0; i < 10; ++i) {
    dir.Write(std::to_string(i), "");
  }
  EXPECT_FALSE(watch->Check({}, {}).over);
  dir.Write("eleventh", "");
  EXPECT_TRUE(watch->Check({}, {}).over);
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
  EXPECT_FALSE(watch->Check({}, {}).over) << "no directory shows it";
  EXPECT_TRUE(watch->Check(FindHeldFiles([] { return std::vector<pid_t>{::getpid()}; }), {}).over);
}

// What is held and cannot be measured is charged with what the file system has lost.
TEST(DiskWatch, ChargesWhatCannotBeMeasured) {
  TempDir dir;
  policy::Limits caps;
  caps.disk = 1ULL << 40;  // whatever others write meanwhile
  const UniqueFd fd = OpenDir(dir);
  Result<DiskWatch> watch = DiskWatch::Start(fd.get(), caps);
  ASSERT_TRUE(watch.ok());
  const std::string path = dir.path() + "/hidden";
  PutSynced(dir, "hidden", 64 << 20);
  const UniqueFd held(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ::unlink(path.c_str());
  EXPECT_LT(watch->Check({}, {}).bytes, 1U << 20) << "NO-CONTROL: no directory shows it";
  constexpr uint64_t kMemory = 7;
  HeldFiles mapped;
  mapped.mapped[{kMemory, 1}] = 4096;
  EXPECT_LT(watch->Check(mapped, std::span(&kMemory, 1)).bytes, 1U << 20) << "not on a disk";
  HeldFiles flying;
  flying.unmeasured_flights = 1;
  HeldFiles moving;
  moving.settled = false;
  for (const HeldFiles& unmeasured : {mapped, flying, moving}) {
    EXPECT_GE(watch->Check(unmeasured, {}).bytes, 16U << 20);  // others may free some
  }
  HeldFiles hidden;
  hidden.unreadable = "process 7 hides what it holds";
  EXPECT_TRUE(watch->Check(hidden, {}).over);
  EXPECT_EQ(watch->Check(hidden, {}).unknown, hidden.unreadable);
}

TEST(DiskWatch, ADirectoryThatIsClosedMeanwhileIsOver) {
  if (::geteuid() == 0) {
    GTEST_SKIP() << "nothing is closed to root";
  }
  TempDir dir;
  const UniqueFd fd = OpenDir(dir);
  Result<DiskWatch> watch = DiskWatch::Start(fd.get(), {});
  ASSERT_TRUE(watch.ok());
  EXPECT_FALSE(watch->Check({}, {}).over);
  ::chmod(dir.path().c_str(), 0);
  EXPECT_TRUE(watch->Check({}, {}).over);
  ::chmod(dir.path().c_str(), 0700);
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
