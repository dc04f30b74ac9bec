// SPDX-License-Identifier: Apache-2.0
#include "limits/tree_scan.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "base/remove_tree.h"
#include "base/sys.h"
#include "test_support.h"

namespace coffer::limits {
namespace {

using std::chrono::seconds;

UniqueFd OpenToRead(const TempDir& dir) {
  return UniqueFd(::open(dir.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

// ext4 allocates late; what a call wrote is known once it is on its way to the disk.
void WriteSynced(const TempDir& dir, const std::string& name, size_t bytes) {
  dir.Write(name, std::string(bytes, 'x'));
  const UniqueFd fd(::open((dir.path() + "/" + name).c_str(), O_RDONLY | O_CLOEXEC));
  ::fsync(fd.get());
}

TEST(ScanDisk, SumsBytesAndInodesOfTheWholeTree) {
  TempDir dir;
  WriteSynced(dir, "a", 1 << 20);
  WriteSynced(dir, "deep/er/b", 1 << 20);
  const Result<DiskUse> use = ScanDisk(OpenToRead(dir).get(), seconds(10));
  ASSERT_TRUE(use.ok());
  EXPECT_TRUE(use->complete());
  EXPECT_EQ(use->inodes, 4U);
  EXPECT_GE(use->bytes, 2U << 20);
  EXPECT_LT(use->bytes, 3U << 20);
}

TEST(ScanDisk, CountsALinkedFileOnceAndFollowsNoSymlink) {
  TempDir dir;
  TempDir outside;
  WriteSynced(dir, "a", 1 << 20);
  WriteSynced(outside, "big", 4 << 20);
  std::filesystem::create_hard_link(dir.path() + "/a", dir.path() + "/b");
  std::filesystem::create_symlink(outside.path(), dir.path() + "/way-out");
  const Result<DiskUse> use = ScanDisk(OpenToRead(dir).get(), seconds(10));
  ASSERT_TRUE(use.ok());
  EXPECT_EQ(use->inodes, 2U);
  EXPECT_LT(use->bytes, 2U << 20);
  EXPECT_EQ(use->linked_outside, 0U) << "all its names are in the tree";
  std::filesystem::create_hard_link(dir.path() + "/a", outside.path() + "/a");
  const Result<DiskUse> linked = ScanDisk(OpenToRead(dir).get(), seconds(10));
  ASSERT_TRUE(linked.ok());
  EXPECT_EQ(linked->linked_outside, 1U);
}

TEST(ScanDisk, CountsWhatBelongsToOthersThanTheTop) {
  TempDir dir;
  dir.Write("own", "x");
  dir.Write("below/group", "x");
  dir.Write("below/user", "x");
  const Result<DiskUse> own = ScanDisk(OpenToRead(dir).get(), seconds(10));
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(own->other_owners, 0U) << "the control";
  if (::geteuid() != 0) {
    return;  // gives nothing away
  }
  ASSERT_EQ(::chown((dir.path() + "/below/group").c_str(), 0, 4871), 0);
  ASSERT_EQ(::chown((dir.path() + "/below/user").c_str(), 4871, 0), 0);
  const std::string kept = dir.path() + "/kept";
  ASSERT_EQ(::mkdir(kept.c_str(), 0700), 0);
  ASSERT_EQ(::chown(kept.c_str(), 4871, 4871), 0);
  EXPECT_EQ(ScanDisk(OpenToRead(dir).get(), seconds(10))->other_owners, 3U);
  ASSERT_EQ(::chmod(kept.c_str(), S_ISVTX | 0555), 0);
  EXPECT_EQ(ScanDisk(OpenToRead(dir).get(), seconds(10))->other_owners, 2U)
      << "not a placeholder of a project";
}

// The layers of an overlay may lie on several file systems: a file then has the device of its layer.
TEST(ScanDisk, CountsAnOverlayWhoseLayersLieOnSeveralFileSystems) {
  TempDir dir;
  for (const char* name : {"lower", "upper", "merged"}) {
    std::filesystem::create_directory(dir.path() + "/" + name);
  }
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string base = dir.path();
    const bool root = ::geteuid() == 0;
    const std::string layers = "lowerdir=" + base + "/lower,upperdir=" + base +
                               "/upper/files,workdir=" + base + "/upper/work" +
                               (root ? "" : ",userxattr");
    const auto map = [](unsigned id) { return "0 " + std::to_string(id) + " 1"; };
    const std::string users = map(::geteuid());
    const std::string groups = map(::getegid());
    if (::unshare(root ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0 ||
        (!root && (!sys::WriteFile("/proc/self/setgroups", "deny").ok() ||
                   !sys::WriteFile("/proc/self/uid_map", users).ok() ||
                   !sys::WriteFile("/proc/self/gid_map", groups).ok())) ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", (base + "/lower").c_str(), "tmpfs", 0, nullptr) != 0 ||
        ::mount("tmpfs", (base + "/upper").c_str(), "tmpfs", 0, nullptr) != 0 ||
        ::mkdir((base + "/upper/files").c_str(), 0777) != 0 ||
        ::mkdir((base + "/upper/work").c_str(), 0777) != 0 ||
        ::mount("overlay", (base + "/merged").c_str(), "overlay", 0, layers.c_str()) != 0) {
      ::_exit(77);
    }
    const std::string file = base + "/merged/file";
    const UniqueFd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    const std::string block(1 << 20, 'x');
    struct stat of_file{};
    struct stat of_dir{};
    if (::write(fd.get(), block.data(), block.size()) != static_cast<ssize_t>(block.size()) ||
        ::fstat(fd.get(), &of_file) != 0 || ::stat((base + "/merged").c_str(), &of_dir) != 0) {
      ::_exit(2);
    }
    if (of_file.st_dev == of_dir.st_dev) {
      ::_exit(3);  // the control: the two devices do differ
    }
    const UniqueFd merged(::open((base + "/merged").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const Result<DiskUse> use = ScanDisk(merged.get(), seconds(10));
    ::_exit(use.ok() && use->complete() && use->bytes >= block.size() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    GTEST_SKIP() << "this host lets us mount no overlay";
  }
  EXPECT_EQ(status, 0);
}

TEST(ScanDisk, SaysWhenItDidNotFinish) {
  TempDir dir;
  dir.Write("a/b/c", "x");
  const Result<DiskUse> use = ScanDisk(OpenToRead(dir).get(), Nanos(0));
  ASSERT_TRUE(use.ok());
  EXPECT_EQ(use->end, ScanEnd::kOutOfTime);
}

// Made deep by renaming, with names so long that no path reaches the bottom. In memory: a disk may take milliseconds
// for each directory that is removed afterwards.
TEST(ScanDisk, SumsTreesOfAnyDepth) {
  for (const int levels : {80, 3000, 10000}) {
    const TempDir dir("/dev/shm");
    const UniqueFd fd = OpenToRead(dir);
    ::mkdirat(fd.get(), "chain", 0700);
    for (int i = 1; i < levels; ++i) {
      ::mkdirat(fd.get(), "next", 0700);
      const UniqueFd next(::openat(fd.get(), "next", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      ::mkdirat(next.get(), "beside", 0700);
      ASSERT_EQ(::renameat(fd.get(), "chain", next.get(), std::string(255, 'd').c_str()), 0);
      ASSERT_EQ(::renameat(fd.get(), "next", fd.get(), "chain"), 0);
    }
    const Result<DiskUse> use = ScanDisk(fd.get(), seconds(120));
    ASSERT_TRUE(use.ok());
    EXPECT_TRUE(use->complete()) << levels;
    EXPECT_EQ(use->inodes, 2U * static_cast<unsigned>(levels) - 1);
    EXPECT_TRUE(EmptyTree(fd.get()).ok());
  }
}

// While it is summed the tree grows at its top, by moving it into a new directory, again and again: both names are there
// for a moment, so that something is left to enter at the top when the walk comes back from the bottom.
TEST(ScanDisk, ATreeThatGrowsAtItsTopIsSummed) {
  const TempDir dir("/dev/shm");
  const UniqueFd fd = OpenToRead(dir);
  const auto grow = [&] {
    return ::mkdirat(fd.get(), "next", 0700) == 0 &&
           ::renameat(fd.get(), "chain", fd.get(), "next/chain") == 0 &&
           ::renameat(fd.get(), "next", fd.get(), "chain") == 0;
  };
  ::mkdirat(fd.get(), "chain", 0700);
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(grow());
  }
  std::atomic<bool> over = false;
  std::thread mover([&] {
    for (int i = 0; i < 5000 && !over && grow(); ++i) {
    }
  });
  for (int i = 0; i < 40; ++i) {
    const Result<DiskUse> use = ScanDisk(fd.get(), seconds(30));
    ASSERT_TRUE(use.ok());
    EXPECT_EQ(use->end, ScanEnd::kComplete) << i;
  }
  over = true;
  mover.join();
  EXPECT_TRUE(EmptyTree(fd.get()).ok());
}

// Programs remove directories while they are summed.
TEST(ScanDisk, ARemovedDirectoryHoldsNothing) {
  const TempDir dir;
  const std::string path = dir.path() + "/removed";
  ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
  const UniqueFd removed(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::rmdir(path.c_str()), 0);
  const Result<DiskUse> use = ScanDisk(removed.get(), seconds(10));
  ASSERT_TRUE(use.ok());
  EXPECT_EQ(use->end, ScanEnd::kComplete);
  EXPECT_EQ(use->inodes, 0U);
}

TEST(ScanDisk, AClosedDirectoryIsNotEmpty) {
  if (::geteuid() == 0) {
    GTEST_SKIP() << "nothing is closed to root";
  }
  for (const mode_t mode : {0U, 0100U, 0400U}) {
    TempDir dir;
    dir.Write("closed/hidden", "x");
    ::chmod((dir.path() + "/closed").c_str(), mode);
    const Result<DiskUse> use = ScanDisk(OpenToRead(dir).get(), seconds(10));
    ASSERT_TRUE(use.ok());
    EXPECT_EQ(use->end, ScanEnd::kUnreadable) << mode;
    ::chmod((dir.path() + "/closed").c_str(), 0700);
    EXPECT_TRUE(ScanDisk(OpenToRead(dir).get(), seconds(10))->complete()) << "NO-CONTROL";
  }
}

}  // namespace
}  // namespace coffer::limits
