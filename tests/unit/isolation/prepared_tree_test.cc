// SPDX-License-Identifier: Apache-2.0
//
// Invariant: a prepared tree holds exactly what its name promises, nobody but its owner can have put it there, and nothing
// can be written to it through the mount. Mounting needs root; an ordinary user is told so and leaves nothing.
#include "isolation/prepared_tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/sys.h"
#include "tests/support/run.h"

namespace coffer::isolation {
namespace {

TreeContent Sample() {
  TreeContent content;
  content.dirs = {"/ssl", "/ssl/certs"};
  content.files = {{"/passwd", "agent:x:1000\n", 0444}, {"/ssl/certs/bundle", "", 0444}};
  content.links = {{"/mtab", "/proc/mounts"}};
  return content;
}

std::vector<std::string> NamesIn(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.push_back(entry.path().filename());
  }
  return names;
}

pid_t PidOfTheDead() {
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  return child;
}

class PreparedTree : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::IsRoot()) {
      GTEST_SKIP() << "a detached mount of a host directory needs root";
    }
  }
  std::string ReadIn(const UniqueFd& tree, const std::string& name) {
    return sys::ReadFileAt(tree.get(), name).value();
  }
  test::TempDir dir_;
  std::string place_ = dir_ / "trees";
};

TEST_F(PreparedTree, HoldsWhatWasAskedForAndCannotBeWritten) {
  Result<UniqueFd> tree = OpenPreparedTree(Sample(), place_);
  ASSERT_TRUE(tree.ok()) << tree.error().message;
  EXPECT_EQ(ReadIn(*tree, "passwd"), "agent:x:1000\n");
  EXPECT_EQ(ReadIn(*tree, "ssl/certs/bundle"), "");
  EXPECT_EQ(sys::ReadLinkAt(tree->get(), "mtab").value(), "/proc/mounts");
  for (const char* name : {"passwd", "new"}) {
    const Result<UniqueFd> opened = sys::OpenAt(tree->get(), name, O_WRONLY | O_CREAT, 0644);
    ASSERT_FALSE(opened.ok()) << name;
    EXPECT_EQ(opened.error().sys_errno, EROFS) << name;
  }
  EXPECT_EQ(::unlinkat(tree->get(), "passwd", 0), -1);
  // The control: it is the mount that refuses, not the file's mode.
  const std::string behind = place_ + "/" + NamesIn(place_).front() + "/passwd";
  EXPECT_TRUE(sys::Open(behind, O_WRONLY).ok());
}

TEST_F(PreparedTree, IsMadeOnce) {
  ASSERT_TRUE(OpenPreparedTree(Sample(), place_).ok());
  const std::string name = NamesIn(place_).front();
  struct stat first;
  ASSERT_EQ(::stat((place_ + "/" + name).c_str(), &first), 0);
  ASSERT_TRUE(OpenPreparedTree(Sample(), place_).ok());
  struct stat again;
  ASSERT_EQ(::stat((place_ + "/" + name).c_str(), &again), 0);
  EXPECT_EQ(first.st_ino, again.st_ino);
  EXPECT_EQ(NamesIn(place_).size(), 1U);
}

TEST_F(PreparedTree, OtherContentIsAnotherTree) {
  std::vector<TreeContent> contents(6, Sample());
  contents[1].files[0].content += "x";
  contents[2].files[0].mode = 0400;
  contents[3].links[0].target = "/proc/self/mounts";
  // The same letters, divided otherwise.
  contents[4].files = {{"/a", "bc", 0444}};
  contents[5].files = {{"/ab", "c", 0444}};
  for (const TreeContent& content : contents) {
    ASSERT_TRUE(OpenPreparedTree(content, place_).ok());
  }
  EXPECT_EQ(NamesIn(place_).size(), contents.size());
}

TEST_F(PreparedTree, IsReadableForAllWhateverTheUmask) {
  const mode_t before = ::umask(077);
  Result<UniqueFd> tree = OpenPreparedTree(Sample(), place_);
  ::umask(before);
  ASSERT_TRUE(tree.ok());
  for (const char* name : {".", "ssl", "ssl/certs", "passwd"}) {
    struct stat info;
    ASSERT_EQ(::fstatat(tree->get(), name, &info, 0), 0);
    EXPECT_EQ(info.st_mode & 0777, S_ISDIR(info.st_mode) ? 0755U : 0444U) << name;
  }
}

TEST_F(PreparedTree, APlaceThatOthersCanWriteIsRefused) {
  ASSERT_TRUE(OpenPreparedTree(Sample(), place_).ok());
  ASSERT_EQ(::chmod(place_.c_str(), 0775), 0);
  EXPECT_FALSE(OpenPreparedTree(Sample(), place_).ok());
  ASSERT_EQ(::chmod(place_.c_str(), 0755), 0);
  ASSERT_EQ(::chown(place_.c_str(), 12345, 0), 0);
  EXPECT_FALSE(OpenPreparedTree(Sample(), place_).ok());
  ASSERT_EQ(::chown(place_.c_str(), 0, 0), 0);
  EXPECT_TRUE(OpenPreparedTree(Sample(), place_).ok()) << "the control";
  ASSERT_EQ(::symlink(place_.c_str(), (dir_ / "link").c_str()), 0);
  EXPECT_FALSE(OpenPreparedTree(Sample(), dir_ / "link").ok());
}

TEST_F(PreparedTree, ALinkInATreesPlaceIsNotFollowed) {
  ASSERT_TRUE(OpenPreparedTree(Sample(), place_).ok());
  const std::string name = place_ + "/" + NamesIn(place_).front();
  ASSERT_EQ(::rename(name.c_str(), (dir_ / "moved").c_str()), 0);
  ASSERT_EQ(::symlink("/etc", name.c_str()), 0);
  const Result<UniqueFd> tree = OpenPreparedTree(Sample(), place_);
  EXPECT_FALSE(tree.ok() && sys::ReadFileAt(tree->get(), "passwd").ok());
}

TEST_F(PreparedTree, DraftsOfTheKilledAreRemoved) {
  ASSERT_TRUE(OpenPreparedTree(Sample(), place_).ok());
  const std::string name = place_ + "/" + NamesIn(place_).front();
  const std::string abandoned = name + "." + std::to_string(PidOfTheDead());
  const std::string in_work = name + "." + std::to_string(::getppid());
  ASSERT_EQ(::rename(name.c_str(), abandoned.c_str()), 0);
  ASSERT_EQ(::mkdir(in_work.c_str(), 0755), 0);
  ASSERT_TRUE(OpenPreparedTree(Sample(), place_).ok());
  EXPECT_FALSE(test::Exists(abandoned));
  EXPECT_TRUE(test::Exists(in_work)) << "its maker lives";
}

TEST_F(PreparedTree, ThereAreNeverMoreThanTheMost) {
  ASSERT_EQ(::mkdir(place_.c_str(), 0755), 0);
  for (size_t i = 0; i < kMostTrees - 1; ++i) {
    ASSERT_EQ(::mkdir((place_ + "/" + std::to_string(i)).c_str(), 0755), 0);
  }
  EXPECT_TRUE(OpenPreparedTree(Sample(), place_).ok());
  TreeContent other = Sample();
  other.files[0].content = "other";
  EXPECT_FALSE(OpenPreparedTree(other, place_).ok());
  EXPECT_TRUE(OpenPreparedTree(Sample(), place_).ok()) << "what is there is still used";
  EXPECT_EQ(NamesIn(place_).size(), kMostTrees);
}

TEST_F(PreparedTree, DevicesWorkAndNothingElseDoes) {
  Result<UniqueFd> tree = OpenPreparedTree(DeviceTree(), place_);
  if (!tree.ok()) {
    GTEST_SKIP() << "this host lets us make no devices: " << tree.error().message;
  }
  const UniqueFd null = sys::OpenAt(tree->get(), "null", O_WRONLY).value();
  EXPECT_EQ(::write(null.get(), "x", 1), 1);
  const UniqueFd zero = sys::OpenAt(tree->get(), "zero", O_RDONLY).value();
  char byte = 'x';
  EXPECT_EQ(::read(zero.get(), &byte, 1), 1);
  EXPECT_EQ(byte, '\0');
  EXPECT_FALSE(sys::OpenAt(tree->get(), "new", O_WRONLY | O_CREAT, 0644).ok());
  for (const std::string& name : NamesIn(place_ + "/" + NamesIn(place_).front())) {
    struct stat info;
    ASSERT_EQ(::fstatat(tree->get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW), 0);
    EXPECT_TRUE(S_ISLNK(info.st_mode) || S_ISCHR(info.st_mode)) << name;
  }
}

TEST(PreparedTreeOfAUser, IsAnErrorAndLeavesNothing) {
  if (test::IsRoot()) {
    GTEST_SKIP() << "about ordinary users";
  }
  test::TempDir dir;
  const std::string place = dir / "trees";
  EXPECT_FALSE(OpenPreparedTree(Sample(), place).ok());
  EXPECT_TRUE(NamesIn(place).empty());
}

}  // namespace
}  // namespace coffer::isolation
