// SPDX-License-Identifier: Apache-2.0
#include "base/remove_tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/sys.h"
#include "tests/support/run.h"

namespace coffer {
namespace {

// A chain of directories, each with a file in it. Built from below by renaming, so that no path is ever long.
void MakeDeep(int parent, const std::string& name, int levels, const std::string& inner) {
  ASSERT_EQ(::mkdirat(parent, "chain", 0700), 0);
  for (int i = 1; i < levels; ++i) {
    ASSERT_EQ(::mkdirat(parent, "next", 0700), 0);
    const UniqueFd next(::openat(parent, "next", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const UniqueFd file(::openat(next.get(), "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_EQ(::renameat(parent, "chain", next.get(), inner.c_str()), 0);
    ASSERT_EQ(::renameat(parent, "next", parent, "chain"), 0);
  }
  ASSERT_EQ(::renameat(parent, "chain", parent, name.c_str()), 0);
}

// A file system in memory: a disk may take milliseconds for each directory.
constexpr const char* kMemory = "/dev/shm";

UniqueFd OpenDir(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

void ExpectRemoved(const std::string& in, int levels) {
  const UniqueFd parent = OpenDir(in);
  MakeDeep(parent.get(), "tree", levels, std::string(255, 'd'));
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit few = {static_cast<rlim_t>(parent.get()) + 8, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &few);
  const Status removed = RemoveTree(parent.get(), "tree");
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(removed.ok()) << levels << ": " << removed.error().message;
  EXPECT_FALSE(test::Exists(in + "/tree")) << levels;
}

TEST(RemoveTree, AnyDepthWithFewDescriptors) {
  const test::TempDir disk;
  ExpectRemoved(disk.path(), 1);
  ExpectRemoved(disk.path(), 80);
  const test::TempDir memory(kMemory);
  ExpectRemoved(memory.path(), 3000);
  ExpectRemoved(memory.path(), 10000);
}

TEST(RemoveTree, NoPathReachesTheBottomOfSuchATree) {
  const test::TempDir dir(kMemory);
  const UniqueFd parent = OpenDir(dir.path());
  MakeDeep(parent.get(), "tree", 100, std::string(255, 'd'));
  std::string path = dir.path() + "/tree";
  for (int i = 0; i < 99; ++i) {
    path += "/" + std::string(255, 'd');
  }
  EXPECT_EQ(::open(path.c_str(), O_RDONLY | O_CLOEXEC), -1) << "NO-CONTROL: a path reaches it";
  EXPECT_TRUE(RemoveTree(parent.get(), "tree").ok());
}

TEST(RemoveTree, ClosedDirectoriesAndManyNames) {
  const test::TempDir dir;
  const UniqueFd parent = OpenDir(dir.path());
  for (const mode_t mode : {0U, 0100U, 0200U, 0400U, 0500U, 0600U}) {
    const std::string name = "closed" + std::to_string(mode);
    std::filesystem::create_directories(dir / ("tree/" + name + "/a/b"));
    ASSERT_EQ(::mknod((dir / ("tree/" + name + "/a/b/fifo")).c_str(), S_IFIFO | 0600, 0), 0);
    ::chmod((dir / ("tree/" + name + "/a/b")).c_str(), mode);
    ::chmod((dir / ("tree/" + name + "/a")).c_str(), mode);
    ::chmod((dir / ("tree/" + name)).c_str(), mode);
  }
  // Names that the removal itself would choose.
  for (int i = 0; i < 50; ++i) {
    std::filesystem::create_directories(dir / ("tree/.removed-" + std::to_string(i) + "/x/y"));
  }
  ::chmod((dir / "tree").c_str(), 0);
  const Status removed = RemoveTree(parent.get(), "tree");
  EXPECT_TRUE(removed.ok()) << removed.error().message;
  EXPECT_FALSE(test::Exists(dir / "tree"));
}

TEST(RemoveTree, FollowsNoLink) {
  const test::TempDir dir;
  const test::TempDir outside;
  outside.Write("precious", "x");
  const UniqueFd parent = OpenDir(dir.path());
  std::filesystem::create_directories(dir / "tree/a");
  std::filesystem::create_directory_symlink(outside.path(), dir / "tree/a/link");
  std::filesystem::create_directory_symlink(outside.path(), dir / "tree/link");
  std::filesystem::create_directory_symlink(outside.path(), dir / "link");
  EXPECT_TRUE(RemoveTree(parent.get(), "tree").ok());
  EXPECT_TRUE(RemoveTree(parent.get(), "link").ok());
  EXPECT_TRUE(RemoveTree(parent.get(), "was-never-there").ok());
  EXPECT_TRUE(test::Exists(outside / "precious"));
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(EmptyTree, LeavesTheDirectoryItself) {
  const test::TempDir dir;
  std::filesystem::create_directories(dir / "a/b/c");
  EXPECT_TRUE(EmptyTree(OpenDir(dir.path()).get()).ok());
  EXPECT_TRUE(test::Exists(dir.path()));
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

}  // namespace
}  // namespace coffer
