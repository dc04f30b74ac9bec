// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/real_path.h"

#include <errno.h>
#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace coffer::isolation {
namespace {

TEST(RealPath, NormalizesByText) {
  EXPECT_EQ(Normalize("/a/b/../c//d/."), "/a/c/d");
  EXPECT_EQ(Normalize("/.."), "/");
  EXPECT_EQ(Normalize("/../../x"), "/x");
  EXPECT_EQ(Normalize(""), "/");
}

TEST(RealPath, RelativeTargets) {
  EXPECT_EQ(RelativeTarget("/bin", "/usr/bin"), "usr/bin");
  EXPECT_EQ(RelativeTarget("/usr/bin/awk", "/usr/bin/mawk"), "mawk");
  EXPECT_EQ(RelativeTarget("/usr/lib64", "/usr/lib"), "lib");
  EXPECT_EQ(RelativeTarget("/opt/x/bin/python", "/usr/bin/python3.11"),
            "../../../usr/bin/python3.11");
  EXPECT_EQ(RelativeTarget("/usr/binary/x", "/usr/bin/x"), "../bin/x");
  EXPECT_EQ(RelativeTarget("/a/b", "/a"), ".");
}

TEST(RealPath, FollowsLinksAndRemembersThem) {
  const test::TempDir dir;
  const std::string file = dir.Write("usr/bin/dash", "x");
  dir.Link("bin", "usr/bin");
  dir.Link("usr/bin/sh", "dash");
  dir.Link("etc/alternatives/sh", dir.path() + "/usr/bin/sh");
  dir.Link("usr/bin/shell", dir.path() + "/etc/alternatives/sh");
  RealPaths paths;
  for (const std::string name : {"/bin/sh", "/usr/bin/shell", "/bin/../bin/./shell", "//bin//sh"}) {
    const auto place = paths.Find(dir.path() + name);
    ASSERT_TRUE(place.ok()) << name;
    EXPECT_EQ(place->real, file) << name;
    EXPECT_EQ(place->directory, dir.path() + "/usr/bin") << name;
    EXPECT_TRUE(place->is_link());
    const auto opened = paths.Open(dir.path() + name);
    ASSERT_TRUE(opened.ok()) << name;
    EXPECT_EQ(opened->place.real, file);
    EXPECT_EQ(opened->place.Inside(), place->Inside());
  }
  EXPECT_EQ(paths.followed().at(dir.path() + "/bin"), dir.path() + "/usr/bin");
  EXPECT_FALSE(paths.Find(file)->is_link());
}

TEST(RealPath, DotDotIsTheParentOfWhereTheLinkLeads) {
  const test::TempDir dir;
  const std::string wanted = dir.Write("real/lib/x", "right");
  dir.Write("lib/x", "wrong");
  dir.Write("real/bin/program", "");
  dir.Link("bin", "real/bin");
  RealPaths paths;
  EXPECT_EQ(paths.Find(dir.path() + "/bin/../lib/x")->real, wanted);
  EXPECT_EQ(paths.Open(dir.path() + "/bin/../lib/x")->place.real, wanted);
}

TEST(RealPath, SaysWhatIsWrong) {
  const test::TempDir dir;
  dir.Link("loop", "loop");
  dir.Link("away", "nowhere");
  dir.Write("file", "");
  std::filesystem::create_directory(dir.path() + "/directory");
  RealPaths paths;
  EXPECT_EQ(paths.Find(dir.path() + "/none").error().sys_errno, ENOENT);
  EXPECT_EQ(paths.Find(dir.path() + "/away").error().sys_errno, ENOENT);
  EXPECT_EQ(paths.Find(dir.path() + "/loop").error().sys_errno, ELOOP);
  EXPECT_EQ(paths.Find(dir.path() + "/file/x").error().sys_errno, ENOTDIR);
  EXPECT_EQ(paths.Open(dir.path() + "/directory").error().sys_errno, EISDIR);
  EXPECT_EQ(paths.Open("/dev/null").error().sys_errno, EACCES);
}

TEST(RealPath, AFifoDoesNotBlock) {
  const test::TempDir dir;
  ASSERT_EQ(::mkfifo((dir.path() + "/fifo").c_str(), 0600), 0);
  RealPaths paths;
  EXPECT_EQ(paths.Open(dir.path() + "/fifo").error().sys_errno, EACCES);
}

}  // namespace
}  // namespace coffer::isolation
