// SPDX-License-Identifier: Apache-2.0
#include "isolation/git_programs.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>

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
  GitNames Read(const std::string& text) {
    dir_.Write("tree/.git/config", text);
    return NamesInGitConfig(root_, root_.path + "/.git/config", {root_.path});
  }
  std::vector<std::string> Find(const std::string& text) { return Read(text).files; }
  std::vector<std::string> FindToCome(const std::string& text) { return Read(text).to_come; }

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

TEST_F(GitPrograms, WordsAreThoseOfTheShell) {
  std::filesystem::create_directories(dir_ / "tree/my tools");
  dir_.Write("tree/my tools/a b", "x");
  const std::string file = root_.path + "/my tools/a b";
  for (const std::string& value :
       Names{R"('my tools/a b' -x)", R"(\"./my tools/a b\" %f)", R"(my\\ tools/a\\ b %f)",
             "\\\"" + file + "\\\"", R"(sh -c '\"my tools/a b\" %f')", R"(X=1 my' tools/a 'b)",
             R"(true; my\\ tools/\"a b\"&)", R"(cat --x='my tools/a b')", "my tools/a b"}) {
    EXPECT_EQ(Find("[filter \"x\"]\n\tclean = \"" + value + "\"\n"), (Names{"my tools/a b"}))
        << value;
  }
}

TEST_F(GitPrograms, ProgramsBeforeTheyExist) {
  EXPECT_EQ(FindToCome("[core]\n\tfsmonitor = ./tools/mon\n"), (Names{"tools/mon"}));
  EXPECT_EQ(FindToCome("[core]\n\tsshCommand = tools/ssh -v\n"),
            (Names{"tools/ssh", "tools/ssh -v"}));
  EXPECT_EQ(FindToCome("[diff]\n\texternal = python3 -B diff.py\n"), (Names{"diff.py"}));
  EXPECT_EQ(FindToCome("[alias]\n\tx = !true && X=1 ./x.sh a/b\n"), (Names{"x.sh"}));
  EXPECT_EQ(FindToCome("[alias]\n\tx = \"!f() { exec tools/x a/b; }; f\"\n"), (Names{"tools/x"}));
  EXPECT_EQ(FindToCome("[core]\n\tfsmonitor = scripts/a.sh\n"), Names()) << "it is there";
  // Subcommands, results, branches, and what git neither runs nor takes programs from.
  EXPECT_EQ(FindToCome("[alias]\n\tx = !make test && cp dist/a dist/b\n"), Names());
  EXPECT_EQ(FindToCome("[alias]\n\tx = log a/b\n[remote \"o\"]\n\tpush = refs/heads/x\n"), Names());
  EXPECT_EQ(FindToCome("[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n"), Names());
  EXPECT_EQ(FindToCome("[core]\n\texcludesFile = conf/ignore\n[remote \"o\"]\n\turl = a/b\n"),
            Names());
}

TEST_F(GitPrograms, NamesThatAreNoPrograms) {
  EXPECT_EQ(Find("[branch \"main\"]\n\tmerge = main\n[user]\n\tname = main\n"), Names());
  EXPECT_EQ(Find("[core]\n\thooksPath = /elsewhere\n[filter \"x\"]\n\tclean = scripts\n"), Names());
  EXPECT_EQ(Find("[core]\n\thooksPath = .\n"), Names());
  // A program of PATH, an argument that is a file.
  EXPECT_EQ(Find("[merge]\n\ttool = main\n[alias]\n\tx = log main\n"), Names());
  EXPECT_EQ(Find("[core]\n\tpager = less main\n"), (Names{"main"}));
}

// Git expands both forms of a home, and a reading that differs from git's would leave a program unprotected.
TEST_F(GitPrograms, HomesAreExpandedAsGitDoes) {
  const char* const home = ::getenv("HOME");
  const std::string before = home == nullptr ? "" : home;
  ::setenv("HOME", dir_.path().c_str(), 1);
  EXPECT_EQ(Find("[core]\n\thooksPath = ~/tree/scripts\n"), (Names{"scripts"}));
  EXPECT_EQ(Find("[core]\n\thooksPath = ~root" + root_.path + "/scripts\n"), Names());
  EXPECT_EQ(Find("[core]\n\thooksPath = ~nobody-has-this-name/scripts\n"), Names());
  ::setenv("HOME", before.c_str(), 1);
}

TEST_F(GitPrograms, ConfigurationsAreFoundWhereGitFindsThem) {
  namespace fs = std::filesystem;
  const std::string at = root_.path;
  EXPECT_EQ(GitConfigsAt(at), Names()) << "without HEAD it is no repository";
  dir_.Write("tree/.git/HEAD", "x");
  EXPECT_EQ(GitConfigsAt(at), (Names{at + "/.git/config", at + "/.git/config.worktree"}));
  const std::string record = dir_ / "main/worktrees/one";
  fs::create_directories(record);
  fs::create_directories(dir_ / "one");
  dir_.Write("main/worktrees/one/HEAD", "x");
  dir_.Write("main/worktrees/one/commondir", "../..\n");
  dir_.Write("one/.git", "gitdir: ../main/worktrees/one\n");
  EXPECT_EQ(GitConfigsAt(dir_ / "one"),
            (Names{record + "/config", record + "/config.worktree", dir_ / "main/config"}));
  dir_.Write("one/.git", "gitdir:\n");
  EXPECT_EQ(GitConfigsAt(dir_ / "one"), Names());
}

}  // namespace
}  // namespace coffer::isolation
