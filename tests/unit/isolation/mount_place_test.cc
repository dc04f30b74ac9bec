// SPDX-License-Identifier: Apache-2.0
//
// A mount within another one covers the inode that was examined; a mount point of the host covers what lies beneath it,
// and what lies behind one is not shown.
#include "isolation/mount_place.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <initializer_list>
#include <string>

#include "tests/support/temp_dir.h"

namespace coffer::isolation {
namespace {

using test::TempDir;

class MountPlace : public ::testing::Test {
 protected:
  MountPlace() {
    dir_.MakeDir("p");
    dir_.MakeDir("p/a");
    dir_.MakeDir("p/a/b");
    dir_.Write("p/a/file", "x");
    dir_.MakeDir("else");
    dir_.MakeDir("else/deep");
    dir_.Write("else/file", "x");
  }
  OpenedMount At(const std::string& path) const {
    OpenedMount mount;
    mount.path.path = mount.at = dir_ / path;
    mount.path.fd = UniqueFd(::open(mount.at.c_str(), O_PATH | O_CLOEXEC));
    struct stat info{};
    (void)::fstat(mount.path.fd.get(), &info);
    mount.path.directory = S_ISDIR(info.st_mode);
    mount.path.dev = info.st_dev;
    mount.path.ino = info.st_ino;
    mount.within = true;
    return mount;
  }
  std::vector<OpenedMount> Mounts(std::initializer_list<const char*> paths) const {
    std::vector<OpenedMount> mounts;
    for (const char* const path : paths) {
      mounts.push_back(At(path));
    }
    return mounts;
  }
  bool IsPlace(const OpenedMount& mount, const struct stat& info) const {
    return mount.place_dev == info.st_dev && mount.place_ino == info.st_ino;
  }
  struct stat Info(const std::string& path) const {
    struct stat info{};
    (void)::lstat((dir_ / path).c_str(), &info);
    return info;
  }

  TempDir dir_;
};

TEST_F(MountPlace, IsWhatWasExamined) {
  std::vector<OpenedMount> mounts = Mounts({"p", "else", "p/a", "p/a/file", "p/a/b"});
  ASSERT_TRUE(FindPlaces(mounts).ok());
  ASSERT_EQ(mounts.size(), 5U);
  EXPECT_EQ(mounts[0].place_ino, 0U) << "a place of its own";
  EXPECT_EQ(mounts[1].place_ino, 0U);
  EXPECT_TRUE(IsPlace(mounts[2], Info("p/a")));
  EXPECT_TRUE(IsPlace(mounts[3], Info("p/a/file")));
  EXPECT_TRUE(IsPlace(mounts[4], Info("p/a/b")));
}

// A name that only begins like the directory around it.
TEST_F(MountPlace, LiesInADirectoryNotBesideIt) {
  dir_.MakeDir("pp");
  std::vector<OpenedMount> mounts = Mounts({"p", "pp", "p/a/file"});
  ASSERT_TRUE(FindPlaces(mounts).ok());
  EXPECT_EQ(mounts[1].place_ino, 0U);
  EXPECT_NE(mounts[2].place_ino, 0U);
}

TEST_F(MountPlace, LiesBeneathAMountPoint) {
  const struct stat below = Info("p/a");
  const struct stat below_file = Info("p/a/file");
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(::geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
      ::_exit(77);
    }
    const auto bind = [&](const char* from, const char* to) {
      return ::mount((dir_ / from).c_str(), (dir_ / to).c_str(), nullptr, MS_BIND, nullptr) == 0;
    };
    if (!bind("else/file", "p/a/file")) {
      ::_exit(1);
    }
    std::vector<OpenedMount> file = Mounts({"p", "p/a/file"});
    if (!FindPlaces(file).ok() || file.size() != 2 || !IsPlace(file[1], below_file)) {
      ::_exit(2);
    }
    if (!bind("else", "p/a")) {
      ::_exit(3);
    }
    // Shown by a mount of itself, and what lies in it then too.
    std::vector<OpenedMount> shown = Mounts({"p", "p/a", "p/a/deep"});
    if (!FindPlaces(shown).ok() || shown.size() != 3 || !IsPlace(shown[1], below) ||
        !IsPlace(shown[2], Info("p/a/deep"))) {
      ::_exit(4);
    }
    std::vector<OpenedMount> hidden = Mounts({"p", "p/a/deep", "p/a/file"});
    if (!FindPlaces(hidden).ok() || hidden.size() != 1) {
      ::_exit(5);
    }
    // What the caller named is not left out in silence.
    std::vector<OpenedMount> named = Mounts({"p", "p/a/deep"});
    named[1].within = false;
    ::_exit(FindPlaces(named).ok() ? 6 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 77) {
    GTEST_SKIP() << "this host gives no mount namespace";
  }
  EXPECT_EQ(status, 0) << WEXITSTATUS(status);
}

// Renamed before its place could be noted.
TEST_F(MountPlace, IsGone) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(::geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount((dir_ / "else").c_str(), (dir_ / "p/a/b").c_str(), nullptr, MS_BIND, nullptr) !=
            0) {
      ::_exit(77);
    }
    std::vector<OpenedMount> mounts = Mounts({"p", "p/a/b"});
    if (::rename((dir_ / "p/a").c_str(), (dir_ / "p/c").c_str()) != 0) {
      ::_exit(1);
    }
    dir_.MakeDir("p/a");
    const Status found = FindPlaces(mounts);
    ::_exit(found.ok() || found.error().code != "policy.path.moved" ? 2 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 77) {
    GTEST_SKIP() << "this host gives no mount namespace";
  }
  EXPECT_EQ(status, 0) << WEXITSTATUS(status);
}

}  // namespace
}  // namespace coffer::isolation
