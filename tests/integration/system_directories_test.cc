// SPDX-License-Identifier: Apache-2.0
//
// `coffer run` writes below the system's directories only with a word of its own.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <optional>

#include "tests/support/run.h"

namespace coffer::test {
namespace {

RunResult Write(const std::string& flag, const std::string& directory) {
  return RunProgram({CofferPath(), "run", "--quiet", flag, directory + ":/data", "--", "sh", "-c",
                     "echo text > /data/file"});
}

// A directory of the test's own below /usr/local, as root; for others one that is there.
class SystemDirectory : public ::testing::Test {
 protected:
  void SetUp() override {
    if (IsRoot()) {
      path_ = made_.emplace("/usr/local/lib").path();
    }
  }

  std::optional<TempDir> made_;
  std::string path_ = "/usr/local/lib";
};

TEST_F(SystemDirectory, WritingNeedsItsWord) {
  const RunResult refused = Write("--rw", path_);
  EXPECT_EQ(refused.exit, 120) << refused.Describe();
  EXPECT_TRUE(Contains(refused.err, "policy.path.system")) << refused.err;
  EXPECT_TRUE(Contains(refused.err, "--dangerously-rw")) << refused.err;
  EXPECT_FALSE(Exists(path_ + "/file"));
  // --out is no way around it.
  const RunResult out = RunProgram(
      {CofferPath(), "run", "--quiet", "--out", path_, "--", "sh", "-c", "echo text > /out/file"});
  EXPECT_EQ(out.exit, 120) << out.Describe();
  EXPECT_FALSE(Exists(path_ + "/file"));
  // The control: with the word the payload writes there, and as root the file is root's.
  const RunResult granted = Write("--dangerously-rw", path_);
  if (IsRoot()) {
    EXPECT_EQ(granted.exit, 0) << granted.Describe();
    struct stat info{};
    ASSERT_EQ(::stat((path_ + "/file").c_str(), &info), 0);
    EXPECT_EQ(info.st_uid, 0U);
  } else {
    EXPECT_FALSE(Contains(granted.err, "policy.path.system")) << granted.err;
  }
}

// The word is for the system's directories, not for whole trees.
TEST_F(SystemDirectory, TheWordDoesNotMakeBroadPathsNarrow) {
  for (const char* broad : {"/etc", "/usr", "/"}) {
    const RunResult run = Write("--dangerously-rw", broad);
    EXPECT_EQ(run.exit, 120) << run.Describe();
    EXPECT_TRUE(Contains(run.err, "policy.path.broad")) << run.err;
  }
}

TEST_F(SystemDirectory, AProjectOfOnesOwnNeedsNoWord) {
  const TempDir dir;
  const std::string project = dir.MakeDir("project");
  const RunResult run = Write("--rw", project);
  EXPECT_EQ(run.exit, 0) << run.Describe();
  EXPECT_EQ(ReadFile(project + "/file").value_or(""), "text\n");
}

}  // namespace
}  // namespace coffer::test
