// SPDX-License-Identifier: Apache-2.0
#include "isolation/git_programs.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/temp_dir.h"

namespace coffer::isolation {
namespace {

class GitPrograms : public ::testing::Test {
 protected:
  GitPrograms() {
    std::filesystem::create_directories(dir_ / "tree/.git");
    std::filesystem::create_directories(dir_ / "tree/scripts");
    root_.path = dir_ / "tree";
    root_.fd = UniqueFd(::open(root_.path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    dir_.Write("tree/scripts/a.sh", "x");
    dir_.Write("tree/scripts/b.sh", "x");
    dir_.Write("tree/main", "x");
  }
  std::vector<std::string> Find(const std::string& text) {
    dir_.Write("tree/.git/config", text);
    return FilesOfGitConfig(root_, root_.path + "/.git/config", {root_.path});
  }

  test::TempDir dir_;
  HostPath root_;
};

using Names = std::vector<std::string>;

TEST_F(GitPrograms, EveryWordThatIsAFile) {
  EXPECT_EQ(Find("[filter \"x\"]\n\tclean = \"sh -c 'scripts/a.sh|./scripts/b.sh'\"\n"),
            (Names{"scripts/a.sh", "scripts/b.sh"}));
  EXPECT_EQ(Find("[alias]\n\tx = !scripts/a.sh --out=none\n"), (Names{"scripts/a.sh"}));
  EXPECT_EQ(Find("[core]\n\tfsmonitor = " + root_.path + "/scripts/a.sh\n"),
            (Names{"scripts/a.sh"}));
}

TEST_F(GitPrograms, HooksAndIncludesAlsoBeforeTheyExist) {
  EXPECT_EQ(Find("[core]\n\thooksPath = none/hooks\n"), (Names{"none/hooks"}));
  EXPECT_EQ(Find("[include]\n\tpath = ../team\n"), (Names{"team"}));
  dir_.Write("tree/team", "[diff \"x\"]\n\ttextconv = scripts/b.sh\n[include]\n\tpath = team\n");
  EXPECT_EQ(Find("[includeIf \"onbranch:main\"]\n\tpath = ../team\n"),
            (Names{"scripts/b.sh", "team"}));
}

TEST_F(GitPrograms, NamesThatAreNoPrograms) {
  EXPECT_EQ(Find("[branch \"main\"]\n\tmerge = main\n[user]\n\tname = main\n"), Names());
  EXPECT_EQ(Find("[core]\n\thooksPath = /elsewhere\n[filter \"x\"]\n\tclean = scripts\n"), Names());
  EXPECT_EQ(Find("[core]\n\thooksPath = .\n"), Names());
  // A program of PATH, an argument that is a file.
  EXPECT_EQ(Find("[merge]\n\ttool = main\n[alias]\n\tx = log main\n"), Names());
  EXPECT_EQ(Find("[core]\n\tpager = less main\n"), (Names{"main"}));
}

}  // namespace
}  // namespace coffer::isolation
