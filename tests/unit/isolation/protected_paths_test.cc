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

class ProtectedPaths : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_.MakeDir("home");
    dir_.MakeDir("home/state");
    dir_.MakeDir("home/state/log");
    dir_.MakeDir("home/state2");
    dir_.MakeDir("elsewhere");
  }
  bool Refused(const std::string& mount, const std::string& own,
               policy::Access access = policy::Access::kWrite) {
    Result<HostPath> opened = OpenHostPath(mount, access, Breadth::kAny);
    EXPECT_TRUE(opened.ok()) << mount;
    const std::string places[] = {own};
    return !CheckShowsNone(*opened, access, places).ok();
  }
  test::TempDir dir_;
};

TEST_F(ProtectedPaths, NeitherItselfNorAPartNorWhatIsAround) {
  const std::string own = dir_ / "home/state";
  EXPECT_TRUE(Refused(own, own));
  EXPECT_TRUE(Refused(own + "/log", own));
  EXPECT_TRUE(Refused(dir_ / "home", own));
  EXPECT_TRUE(Refused("/", own));
  // The controls: beside it, and with the same beginning.
  EXPECT_FALSE(Refused(dir_ / "elsewhere", own));
  EXPECT_FALSE(Refused(dir_ / "home/state2", own));
}

TEST_F(ProtectedPaths, OneThatIsNotThereYetCounts) {
  EXPECT_TRUE(Refused(dir_ / "home", dir_ / "home/cache/coffer"));
  EXPECT_FALSE(Refused(dir_ / "elsewhere", dir_ / "home/cache/coffer"));
}

TEST_F(ProtectedPaths, FilesCountAndSoDoRelativeNames) {
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

TEST_F(ProtectedPaths, LinksInItsNameDoNotHideIt) {
  ASSERT_EQ(::symlink("home", (dir_ / "link").c_str()), 0);
  EXPECT_TRUE(Refused(dir_ / "home/state", dir_ / "link/state"));
  EXPECT_TRUE(Refused(dir_ / "home", dir_ / "link/later"));
  EXPECT_FALSE(Refused(dir_ / "elsewhere", dir_ / "link/state"));
}

// A call that may write where a link leads nowhere yet could make what it leads to.
TEST_F(ProtectedPaths, WhereADanglingLinkLeadsCounts) {
  ASSERT_EQ(::symlink((dir_ / "elsewhere/later").c_str(), (dir_ / "home/config").c_str()), 0);
  EXPECT_TRUE(Refused(dir_ / "elsewhere", dir_ / "home/config"));
  EXPECT_TRUE(Refused(dir_ / "elsewhere", dir_ / "home/config/coffer"));
  EXPECT_FALSE(Refused(dir_ / "home/state2", dir_ / "home/config")) << "NO-CONTROL";
}

// Every link on the way decides where a place is, so none of them may be replaced; seeing them is no harm.
TEST_F(ProtectedPaths, NoLinkOnTheWayIsWritable) {
  ASSERT_EQ(::symlink("../home/state", (dir_ / "elsewhere/middle").c_str()), 0);
  ASSERT_EQ(::symlink((dir_ / "elsewhere/middle").c_str(), (dir_ / "first").c_str()), 0);
  EXPECT_TRUE(Refused(dir_ / "elsewhere", dir_ / "first"));
  EXPECT_TRUE(Refused(dir_ / "elsewhere", dir_ / "first/log"));
  EXPECT_FALSE(Refused(dir_ / "elsewhere", dir_ / "first", policy::Access::kRead));
  EXPECT_TRUE(Refused(dir_ / "home/state", dir_ / "first", policy::Access::kRead));
  EXPECT_FALSE(Refused(dir_ / "home/state2", dir_ / "first")) << "NO-CONTROL";
  // A ring of links ends.
  ASSERT_EQ(::symlink("ring", (dir_ / "elsewhere/ring").c_str()), 0);
  EXPECT_TRUE(Refused(dir_ / "elsewhere", dir_ / "elsewhere/ring/x"));
}

TEST_F(ProtectedPaths, AReceiptBehindALinkThatTheCallCouldReplace) {
  ASSERT_EQ(::symlink("../home", (dir_ / "elsewhere/link").c_str()), 0);
  Result<HostPath> opened = OpenHostPath(dir_ / "elsewhere", policy::Access::kWrite);
  ASSERT_TRUE(opened.ok());
  EXPECT_FALSE(CheckReceiptOutside(*opened, dir_ / "elsewhere/link/receipt").ok());
  EXPECT_TRUE(CheckReceiptOutside(*opened, dir_ / "home/receipt").ok()) << "NO-CONTROL";
}

// A bind mount has another name and the same directory behind it.
TEST_F(ProtectedPaths, BindMountsDoNotHideIt) {
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
