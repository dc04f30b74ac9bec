// SPDX-License-Identifier: Apache-2.0
#include "call/run/scratch.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/run.h"

namespace coffer::call {
namespace {

mode_t ModeOf(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

TEST(Scratch, HoldsWhatACallNeedsAndIsPrivate) {
  Result<Scratch> made = Scratch::Make({{"data.txt", "content"}});
  ASSERT_TRUE(made.ok()) << made.error().message;
  Scratch scratch = std::move(made).value();
  const std::string path = scratch.path();
  EXPECT_EQ(ModeOf(path), 0700U) << "copies of inputs lie in it";
  EXPECT_EQ(ModeOf(path + "/workspace"), 0700U);
  EXPECT_EQ(ModeOf(path + "/tmp"), 0700U);
  EXPECT_EQ(*test::ReadFile(path + "/in/data.txt"), "content");
  EXPECT_EQ(*test::ReadFile(path + "/workspace/data.txt"), "content");
  ASSERT_TRUE(scratch.Remove().ok());
  EXPECT_FALSE(test::Exists(path));
  EXPECT_TRUE(scratch.Remove().ok()) << "twice is harmless";
}

TEST(Scratch, OpensForTheBoundarysUidAlone) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root has boundaries with a uid of their own";
  }
  constexpr uint32_t kUid = 0x70001234;
  const mode_t before = ::umask(0077);
  Result<Scratch> scratch = Scratch::Make({{"data.txt", "content"}});
  ::umask(before);
  ASSERT_TRUE(scratch.ok());
  ASSERT_TRUE(scratch->GiveTo(kUid).ok());
  const test::TempDir beside;
  const std::string open_file = beside.Write("open", "content", 0644);
  // 0: both are read; 1: only the one beside it.
  const auto read_as = [&](uint32_t uid) {
    const pid_t child = ::fork();
    if (child == 0) {
      if (::setresgid(uid, uid, uid) != 0 || ::setresuid(uid, uid, uid) != 0 ||
          !test::ReadFile(open_file)) {
        ::_exit(90);
      }
      ::_exit(test::ReadFile(scratch->path() + "/in/data.txt") == "content" ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  EXPECT_EQ(read_as(kUid), 0) << "the boundary reads its inputs, whatever the caller's umask";
  EXPECT_EQ(read_as(kUid + 1), 1) << "another boundary does not";
  EXPECT_EQ(read_as(65534), 1) << "nor does another user";
  EXPECT_EQ(ModeOf(scratch->path()), 0710U);
}

TEST(Scratch, RemovalStaysInside) {
  const test::TempDir outside;
  const std::string precious = outside.Write("precious", "x");
  std::string path;
  {
    Result<Scratch> scratch = Scratch::Make({});
    ASSERT_TRUE(scratch.ok());
    path = scratch->path();
    ASSERT_EQ(::symlink(outside.path().c_str(), (path + "/workspace/link").c_str()), 0);
    ASSERT_EQ(::mkdir((path + "/workspace/closed").c_str(), 0700), 0);
    ASSERT_EQ(::mkdir((path + "/workspace/closed/deeper").c_str(), 0700), 0);
    ASSERT_EQ(::mkfifo((path + "/workspace/fifo").c_str(), 0600), 0);
    ASSERT_EQ(::chmod((path + "/workspace/closed").c_str(), 0), 0);
    ASSERT_EQ(::chmod((path + "/workspace").c_str(), 0), 0);
  }
  EXPECT_FALSE(test::Exists(path)) << "removed by its destructor";
  EXPECT_TRUE(test::Exists(precious));
}

TEST(Scratch, RefusesInputsWithTheSameName) {
  EXPECT_FALSE(Scratch::Make({{"a", "1"}, {"a", "2"}}).ok());
}

TEST(Scratch, SweepRemovesWhatTheDeadLeftAndNothingElse) {
  Result<Scratch> alive = Scratch::Make({});
  ASSERT_TRUE(alive.ok());
  int answer[2];
  ASSERT_EQ(::pipe(answer), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    Result<Scratch> orphan = Scratch::Make({{"f", "x"}});
    const std::string path = orphan.ok() ? orphan->path() : "";
    ::_exit(::write(answer[1], path.data(), path.size()) > 0 ? 0 : 1);  // no destructor runs
  }
  char buffer[4096] = {};
  ::close(answer[1]);
  ASSERT_GT(::read(answer[0], buffer, sizeof buffer - 1), 0);
  ::close(answer[0]);
  ASSERT_TRUE(test::Exists(buffer));
  ::waitpid(child, nullptr, 0);
  const std::string decoy = alive->path().substr(0, alive->path().rfind('/')) + "/coffer-scratch-x";
  ::mkdir(decoy.c_str(), 0700);
  EXPECT_GE(SweepScratch(), 1U);
  EXPECT_FALSE(test::Exists(buffer));
  EXPECT_TRUE(test::Exists(alive->path()));
  EXPECT_TRUE(test::Exists(decoy)) << "no pid in its name";
  ::rmdir(decoy.c_str());
}

}  // namespace
}  // namespace coffer::call
