// SPDX-License-Identifier: Apache-2.0
#include "isolation/tree_path.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/support/temp_dir.h"

namespace coffer::isolation {
namespace {

namespace fs = std::filesystem;
using End = TreePath::End;

class TreePathTest : public ::testing::Test {
 protected:
  TreePathTest() {
    fs::create_directories(root_.path + "/a/b");
    fs::create_directories(dir_ / "elsewhere");
  }
  void Link(const std::string& name, const std::string& target) {
    fs::create_symlink(target, root_.path + "/" + name);
  }
  static HostPath RootAt(const std::string& path) {
    fs::create_directories(path);
    HostPath root;
    root.path = path;
    return root;
  }

  test::TempDir dir_;
  HostPath root_ = RootAt(dir_ / "tree");
};

TEST_F(TreePathTest, EveryLinkOnTheWayIsListed) {
  Link("first", "second");
  Link("second", "a/../a/third");
  Link("a/third", "b");
  const TreePath found = FollowInTree(root_, "first");
  EXPECT_EQ(found.end, End::kInside);
  EXPECT_EQ(found.path, "a/b");
  EXPECT_EQ(found.links, (std::vector<std::string>{"first", "second", "a/third"}));
}

TEST_F(TreePathTest, LinksThatLeaveAndComeBack) {
  fs::create_symlink(root_.path, dir_ / "alias");
  Link("around", (dir_ / "alias/a") + "/b");
  Link("above", "../tree/a");
  Link("out", dir_ / "elsewhere");
  Link("top", "a/..");
  EXPECT_EQ(FollowInTree(root_, "around").path, "a/b");
  EXPECT_EQ(FollowInTree(root_, "above").path, "a");
  EXPECT_EQ(FollowInTree(root_, "out").end, End::kOutside);
  EXPECT_EQ(FollowInTree(root_, "top").end, End::kInside);
  EXPECT_EQ(FollowInTree(root_, "top").path, "");
}

// With a link in its place the kernel would go up from elsewhere.
TEST_F(TreePathTest, DirectoriesThatThePathLeavesAreListed) {
  Link("first", "a/b/../../a/../x");
  Link("dots", "./a/b/.");
  const TreePath found = FollowInTree(root_, "first");
  EXPECT_EQ(found.end, End::kMissing);
  EXPECT_EQ(found.path, "x");
  EXPECT_EQ(found.left, (std::vector<std::string>{"a/b", "a", "a"}));
  EXPECT_TRUE(FollowInTree(root_, "dots").left.empty());
  EXPECT_EQ(FollowInTree(root_, "new/../a").left, std::vector<std::string>{"new"});
}

TEST_F(TreePathTest, AbsolutePathsAreFollowedIntoTheTree) {
  Link("hop", "a");
  fs::create_symlink("../tree/hop/b", dir_ / "elsewhere/in");
  fs::create_symlink("../tree/hop/../../elsewhere", dir_ / "elsewhere/through");
  const TreePath in = FollowInTree(root_, dir_ / "elsewhere/in");
  EXPECT_EQ(in.end, End::kInside);
  EXPECT_EQ(in.path, "a/b");
  EXPECT_EQ(in.links, std::vector<std::string>{"hop"});
  const TreePath through = FollowInTree(root_, dir_ / "elsewhere/through");
  EXPECT_EQ(through.end, End::kOutside);
  EXPECT_EQ(through.links, std::vector<std::string>{"hop"});
  EXPECT_EQ(through.left, std::vector<std::string>{"a"});
}

TEST_F(TreePathTest, WhatIsMissingAndCircles) {
  Link("dangling", "a/none/x");
  Link("circle", "circle");
  EXPECT_EQ(FollowInTree(root_, "dangling").end, End::kMissing);
  EXPECT_EQ(FollowInTree(root_, "dangling").path, "a/none/x");
  EXPECT_EQ(FollowInTree(root_, "none").end, End::kMissing);
  EXPECT_EQ(FollowInTree(root_, "circle").end, End::kOutside);
}

}  // namespace
}  // namespace coffer::isolation
