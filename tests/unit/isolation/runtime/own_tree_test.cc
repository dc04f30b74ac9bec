// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/own_tree.h"

#include <gtest/gtest.h>

#include "isolation/home_directories.h"
#include "tests/support/temp_dir.h"

namespace coffer::isolation {
namespace {

std::string TreeOf(const std::string& path) {
  RealPaths paths;
  const Result<RealPaths::Place> place = paths.Find(path);
  EXPECT_TRUE(place.ok()) << path;
  return place.ok() ? OwnTree(*place) : "";
}

TEST(OwnTree, IsTheDirectoryOrThePrefixOfAProgram) {
  const test::TempDir dir;
  EXPECT_EQ(TreeOf(dir.Write("proj/tool", "")), dir.path() + "/proj");
  EXPECT_EQ(TreeOf(dir.Write("venv/bin/python3", "")), dir.path() + "/venv");
  EXPECT_EQ(TreeOf(dir.Write("proj/lib/tool", "")), dir.path() + "/proj/lib");
}

TEST(OwnTree, OfTheSystemThereIsNone) { EXPECT_EQ(TreeOf("/usr/bin/env"), ""); }

TEST(OwnTree, NeverAWholeHome) {
  const test::TempDir dir;
  const std::string tool = dir.Write("home/tool", "");
  const std::string script = dir.Write("home/bin/script", "");
  const std::string home = dir.path() + "/home";
  EXPECT_EQ(TreeOf(tool), home);
  ::setenv("HOME", home.c_str(), 1);
  EXPECT_EQ(TreeOf(tool), "");
  EXPECT_EQ(TreeOf(script), home + "/bin");
}

TEST(OwnTree, AHomeByAnotherNameIsAHome) {
  const test::TempDir dir;
  EXPECT_FALSE(IsAnyHome(dir.path())) << "the control";
  EXPECT_TRUE(IsAnyHome("/root"));
  EXPECT_TRUE(IsAnyHome("/proc/self/root/root"));
  EXPECT_TRUE(IsAnyHome("/root/"));
  dir.Link("alias", "/root");
  EXPECT_TRUE(IsAnyHome(dir.path() + "/alias"));
}

TEST(OwnTree, ALinkKeepsTheTreeWhereTheLinkIs) {
  const test::TempDir dir;
  dir.Write("secrets/deploy", "");
  dir.Link("proj/bin/tool", dir.path() + "/secrets/deploy");
  EXPECT_EQ(TreeOf(dir.path() + "/proj/bin/tool"), dir.path() + "/proj/bin")
      << "the link may be all that a payload could write";
  dir.Write("proj/pyvenv.cfg", "");
  EXPECT_EQ(TreeOf(dir.path() + "/proj/bin/tool"), dir.path() + "/proj");
  dir.Link("proj/current", dir.path() + "/secrets");
  EXPECT_EQ(TreeOf(dir.path() + "/proj/current/deploy"), dir.path() + "/proj");
}

TEST(OwnTree, ALinkThatOnlyRootCanMakeIsNoLink) {
  RealPaths paths;
  const Result<RealPaths::Place> place = paths.Find("/bin/sh");
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(place->link_directory, "");
}

}  // namespace
}  // namespace coffer::isolation
