// SPDX-License-Identifier: Apache-2.0
#include "isolation/project_scan.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tests/support/temp_dir.h"

namespace coffer::isolation {
namespace {

namespace fs = std::filesystem;

class ProjectScanTest : public ::testing::Test {
 protected:
  ProjectScanTest() {
    root_.path = dir_ / "tree";
    fs::create_directories(root_.path);
    root_.fd = UniqueFd(::open(root_.path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  void Make(const std::string& name) {
    fs::create_directories(fs::path(root_.path + "/" + name).parent_path());
    dir_.Write("tree/" + name, "x");
  }
  void MakeGit(const std::string& name) {
    fs::create_directories(root_.path + "/" + name + "/objects");
    fs::create_directories(root_.path + "/" + name + "/refs/heads");
    Make(name + "/HEAD");
  }
  ProjectScan Scan(const ProjectScan* before = nullptr) {
    Result<ProjectScan> scan = ScanProject(root_, before);
    EXPECT_TRUE(scan.ok());
    return scan.ok() ? std::move(scan).value() : ProjectScan();
  }
  static std::vector<std::string> Paths(const std::vector<FoundName>& list) {
    std::vector<std::string> paths;
    for (const FoundName& found : list) {
      paths.push_back(found.path);
    }
    std::sort(paths.begin(), paths.end());
    return paths;
  }

  test::TempDir dir_;
  HostPath root_;
};

using Names = std::vector<std::string>;

TEST_F(ProjectScanTest, BranchesHaveAnyNameAndRepositoriesAreFoundAmongThem) {
  MakeGit(".git");
  Make(".git/refs/heads/mise.toml");
  Make(".git/refs/heads/.envrc");  // a branch cannot
  Make(".git/objects/ab/mise.toml");
  Make("pkg/mise.toml");
  MakeGit(".git/refs/heads/a");
  const ProjectScan scan = Scan();
  EXPECT_EQ(Paths(scan.names), (Names{".git", ".git/objects/ab/mise.toml", ".git/refs/heads/.envrc",
                                      "pkg/mise.toml"}));
  EXPECT_EQ(Paths(scan.git_directories), (Names{".git", ".git/refs/heads/a"}));
}

TEST_F(ProjectScanTest, LinksCountInGitDirectoriesThatWereThereBefore) {
  MakeGit(".git");
  fs::create_symlink("elsewhere", root_.path + "/.git/old");
  fs::create_symlink("elsewhere", root_.path + "/link");
  const ProjectScan before = Scan();
  EXPECT_EQ(Paths(before.git_links), (Names{".git/old"}));
  MakeGit("new");
  fs::create_symlink("elsewhere", root_.path + "/new/link");
  fs::create_symlink("elsewhere", root_.path + "/.git/refs/heads/link");
  // A directory beside the git directory that is entered after it.
  fs::create_directories(root_.path + "/.a");
  fs::create_symlink("elsewhere", root_.path + "/.a/link");
  EXPECT_EQ(Paths(Scan(&before).git_links), (Names{".git/old", ".git/refs/heads/link"}));
}

TEST_F(ProjectScanTest, AnotherKindIsAnotherFile) {
  FoundName socket;
  socket.dev = 1;
  socket.ino = 2;
  socket.mode = S_IFSOCK | 0600;
  FoundName file = socket;
  file.mode = S_IFSOCK | 0644;
  EXPECT_TRUE(file.Is(socket));
  file.mode = S_IFREG | 0600;  // the kernel gave the number again
  EXPECT_FALSE(file.Is(socket));
}

// A payload's names take bounded memory, and none is left out.
TEST_F(ProjectScanTest, WhatLiesDeepIsNamedByADirectoryAbove) {
  const ProjectScan before = Scan();
  std::string deep = "top";
  for (int i = 0; i < 12; ++i) {
    deep += "/" + std::string(200, 'd');
  }
  fs::create_directories(root_.path + "/" + deep);
  for (const char* name : {".envrc", "a.code-workspace", "b.code-workspace", "c.code-workspace"}) {
    Make(deep + "/" + name);
  }
  Make("top/.envrc");
  const ProjectScan after = Scan(&before);
  ASSERT_EQ(after.names.size(), 2U);
  EXPECT_EQ(after.names[0].path, "top/.envrc");
  EXPECT_FALSE(after.names[0].above);
  EXPECT_TRUE(after.names[1].above);
  EXPECT_TRUE(deep.starts_with(after.names[1].path + "/")) << after.names[1].path;
  EXPECT_LE(after.names[1].path.size(), 1024U);
  EXPECT_EQ(after.names[1].ino, 0U) << "it stands for several";
}

}  // namespace
}  // namespace coffer::isolation
