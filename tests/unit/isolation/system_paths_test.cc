// SPDX-License-Identifier: Apache-2.0
#include "isolation/system_paths.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/run.h"

namespace coffer::isolation {
namespace {

bool IsSystem(const std::string& path) {
  SystemPaths system;
  struct stat info{};
  EXPECT_EQ(::lstat(path.c_str(), &info), 0) << path;
  return system.IsSystem(path, info);
}

TEST(SystemPaths, TheSystemsOwn) {
  EXPECT_TRUE(IsSystem("/usr"));
  EXPECT_TRUE(IsSystem("/usr/bin/env"));
  EXPECT_FALSE(IsSystem("/etc/passwd")) << "root's and public, and not in a directory of programs";
  EXPECT_FALSE(IsSystem("/tmp"));
  EXPECT_FALSE(IsSystem("/"));
}

TEST(SystemPaths, ADirectoryOfAnotherUserIsNot) {
  const test::TempDir dir;
  const std::string file = dir.Write("file", "");
  EXPECT_FALSE(IsSystem(file));
}

TEST(SystemPaths, LinksOfTheSystem) {
  SystemPaths system;
  EXPECT_TRUE(system.IsSystemLink("/usr/bin", "awk")) << "Debian's alternatives";
  EXPECT_FALSE(system.IsSystemLink("/usr/bin", "no-such-link"));
  EXPECT_FALSE(system.IsSystemLink("/tmp", "anything"));
  EXPECT_FALSE(system.IsSystemLink("/root", "anything")) << "root's own project is no such place";
  EXPECT_FALSE(system.IsSystemLink("/opt", "anything"));
  const test::TempDir dir;
  ASSERT_EQ(::symlink("/etc/passwd", (dir / "link").c_str()), 0);
  EXPECT_FALSE(system.IsSystemLink(dir.path(), "link"));
}

TEST(SystemPaths, WritingTheSystemsDirectoriesChangesTheHost) {
  for (const char* path : {"/etc/cron.d", "/etc", "/usr/bin", "/usr/local/lib/x", "/boot/x",
                           "/usr/src", "/run/x", "/lib64"}) {
    EXPECT_TRUE(IsSystemDirectory(std::string_view(path), 12345)) << path;
  }
  EXPECT_TRUE(IsSystemDirectory(std::string_view("/var/lib/dpkg"), 0));
  EXPECT_TRUE(IsSystemDirectory(std::string_view("/var/lib/postgresql"), 105)) << "an account";
  EXPECT_FALSE(IsSystemDirectory(std::string_view("/var/lib/app"), 1000)) << "a user's data";
  for (const char* path : {"/root/project", "/home/a/b", "/srv/x", "/opt/x", "/usr/src/app",
                           "/tmp/x", "/var/tmp/x", "/usr/local/src/x", "/etcetera", "/"}) {
    EXPECT_FALSE(IsSystemDirectory(std::string_view(path), 0)) << path;
  }
}

TEST(SystemPaths, ADirectoryIsRecognizedByWhatIsAboveIt) {
  const auto judged = [](const std::string& path) {
    const int fd = ::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    EXPECT_GE(fd, 0) << path;
    const bool system = IsSystemDirectory(fd, 0);
    ::close(fd);
    return system;
  };
  EXPECT_TRUE(judged("/usr/share"));
  EXPECT_TRUE(judged("/etc"));
  EXPECT_TRUE(judged("/var/lib"));
  const test::TempDir dir;
  EXPECT_FALSE(judged(dir.path()));
  EXPECT_TRUE(IsSystemDirectory(-1, 0)) << "what cannot be told counts as the system's";
}

// Modes as root: below /usr/local, in a directory of the test's own.
TEST(SystemPaths, ModesDecide) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can make files below /usr";
  }
  const test::TempDir made("/usr/local/lib");
  const std::string& directory = made.path();
  const std::string file = made.Write("file", "");
  const auto judged = [&](mode_t directory_mode, mode_t mode, uid_t owner, gid_t group) {
    EXPECT_EQ(::chown(file.c_str(), owner, group), 0);
    EXPECT_EQ(::chmod(file.c_str(), mode), 0);
    EXPECT_EQ(::chown(directory.c_str(), owner == 1 ? 0 : owner, group), 0);
    EXPECT_EQ(::chmod(directory.c_str(), directory_mode), 0);
    return IsSystem(file);
  };
  EXPECT_TRUE(judged(0755, 0644, 0, 0));
  EXPECT_FALSE(judged(0755, 0640, 0, 0)) << "not public";
  EXPECT_FALSE(judged(0755, 0664, 0, 0)) << "root's group may have members";
  EXPECT_FALSE(judged(0755, 0666, 0, 0));
  EXPECT_FALSE(judged(0755, 0644, 1, 0)) << "another owner";
  EXPECT_FALSE(judged(0777, 0644, 0, 0)) << "anybody can put another file there";
  EXPECT_FALSE(judged(01777, 0644, 0, 0));
  EXPECT_FALSE(judged(0755, 0644, 4321, 0)) << "a directory of another owner";
  EXPECT_FALSE(judged(0775, 0644, 0, 4321)) << "a group that is no system group";
}

TEST(SystemPaths, BelowIsByComponent) {
  EXPECT_TRUE(IsAtOrBelow("/usr", "/usr"));
  EXPECT_TRUE(IsAtOrBelow("/usr/x", "/usr"));
  EXPECT_FALSE(IsAtOrBelow("/usrx", "/usr"));
  EXPECT_FALSE(IsAtOrBelow("/us", "/usr"));
  EXPECT_TRUE(IsAtOrBelow("/anything", "/"));
}

}  // namespace
}  // namespace coffer::isolation
