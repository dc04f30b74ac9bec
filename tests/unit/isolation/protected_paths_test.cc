// SPDX-License-Identifier: Apache-2.0
//
// Invariant: no mount shows a directory that Cofferdam relies on, under any name.
#include "isolation/protected_paths.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/run.h"

namespace coffer::isolation {
namespace {

class OwnPlaces : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_.MakeDir("home");
    dir_.MakeDir("home/state");
    dir_.MakeDir("home/state/log");
    dir_.MakeDir("home/state2");
    dir_.MakeDir("elsewhere");
  }
  bool Refused(const std::string& mount, const std::string& own) {
    Result<HostPath> opened = OpenHostPath(mount, policy::Access::kWrite, Breadth::kAny);
    EXPECT_TRUE(opened.ok()) << mount;
    const std::string places[] = {own};
    return !CheckShowsNone(*opened, places).ok();
  }
  test::TempDir dir_;
};

TEST_F(OwnPlaces, NeitherItselfNorAPartNorWhatIsAround) {
  const std::string own = dir_ / "home/state";
  EXPECT_TRUE(Refused(own, own));
  EXPECT_TRUE(Refused(own + "/log", own));
  EXPECT_TRUE(Refused(dir_ / "home", own));
  EXPECT_TRUE(Refused("/", own));
  // The controls: beside it, and with the same beginning.
  EXPECT_FALSE(Refused(dir_ / "elsewhere", own));
  EXPECT_FALSE(Refused(dir_ / "home/state2", own));
}

TEST_F(OwnPlaces, OneThatIsNotThereYetCounts) {
  EXPECT_TRUE(Refused(dir_ / "home", dir_ / "home/cache/coffer"));
  EXPECT_FALSE(Refused(dir_ / "elsewhere", dir_ / "home/cache/coffer"));
}

TEST_F(OwnPlaces, FilesCountAndSoDoRelativeNames) {
  dir_.Write("home/state/coffer.toml", "");
  EXPECT_TRUE(Refused(dir_ / "home", dir_ / "home/state/coffer.toml"));
  EXPECT_FALSE(Refused(dir_ / "home/state2", dir_ / "home/state/coffer.toml"));
  char before[4096];
  ASSERT_NE(::getcwd(before, sizeof(before)), nullptr);
  ASSERT_EQ(::chdir((dir_ / "home").c_str()), 0);
  EXPECT_TRUE(Refused(dir_ / "home/state", "state"));
  EXPECT_TRUE(Refused(dir_ / "home/state", "state2/../state/later"));
  EXPECT_TRUE(Refused(dir_ / "home", "not/there"));
  EXPECT_FALSE(Refused(dir_ / "elsewhere", "state"));
  ASSERT_EQ(::chdir(before), 0);
}

TEST_F(OwnPlaces, LinksInItsNameDoNotHideIt) {
  ASSERT_EQ(::symlink("home", (dir_ / "link").c_str()), 0);
  EXPECT_TRUE(Refused(dir_ / "home/state", dir_ / "link/state"));
  EXPECT_TRUE(Refused(dir_ / "home", dir_ / "link/later"));
  EXPECT_FALSE(Refused(dir_ / "elsewhere", dir_ / "link/state"));
}

// A bind mount has another name and the same directory behind it.
TEST_F(OwnPlaces, BindMountsDoNotHideIt) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(test::IsRoot() ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount((dir_ / "home").c_str(), (dir_ / "elsewhere").c_str(), nullptr, MS_BIND, nullptr) !=
            0) {
      ::_exit(77);
    }
    const std::string own = dir_ / "home/state";
    const bool held = Refused(dir_ / "elsewhere", own) && Refused(dir_ / "elsewhere/state", own) &&
                      Refused(dir_ / "elsewhere/state/log", own) &&
                      !Refused(dir_ / "elsewhere/state2", own);
    ::_exit(held ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    GTEST_SKIP() << "this host lets us mount nothing";
  }
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace coffer::isolation
