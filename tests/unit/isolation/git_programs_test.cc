// SPDX-License-Identifier: Apache-2.0
#include "isolation/git_programs.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <optional>

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

TEST_F(GitPrograms, SettingsOfTheEnvironmentCount) {
  const auto set = [](int i, const char* key, const char* value) {
    ::setenv(("GIT_CONFIG_KEY_" + std::to_string(i)).c_str(), key, 1);
    ::setenv(("GIT_CONFIG_VALUE_" + std::to_string(i)).c_str(), value, 1);
  };
  set(0, "Core.HooksPath", "none/hooks");
  set(1, "diff.a.B.Command", "scripts/a.sh");
  set(2, "user.name", "scripts/b.sh");
  set(3, "core.fsmonitor", "scripts/b.sh");
  const auto found = [&](const char* count) {
    ::setenv("GIT_CONFIG_COUNT", count, 1);
    return NamesInGitEnvironment(root_, {root_.path}).files;
  };
  EXPECT_EQ(found("3"), (Names{"none/hooks", "scripts/a.sh"}));
  EXPECT_EQ(found("4"), (Names{"none/hooks", "scripts/a.sh", "scripts/b.sh"}));
  EXPECT_EQ(found("0"), Names());
  for (const char* name : {"GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0",
                           "GIT_CONFIG_KEY_1", "GIT_CONFIG_VALUE_1", "GIT_CONFIG_KEY_2",
                           "GIT_CONFIG_VALUE_2", "GIT_CONFIG_KEY_3", "GIT_CONFIG_VALUE_3"}) {
    ::unsetenv(name);
  }
}

TEST_F(GitPrograms, VariablesThatNameProgramsCount) {
  const auto found = [&](const char* name, const std::string& value) {
    const char* const old = ::getenv(name);
    const std::optional<std::string> before =
        old == nullptr ? std::nullopt : std::optional<std::string>(old);
    ::setenv(name, value.c_str(), 1);
    Names files = NamesInGitEnvironment(root_, {root_.path}).files;
    before ? ::setenv(name, before->c_str(), 1) : ::unsetenv(name);
    return files;
  };
  const std::string a = root_.path + "/scripts/a.sh";
  EXPECT_EQ(found("NO_PROGRAM", a), Names()) << "NO-CONTROL";
  for (const char* const name : {"EDITOR", "VISUAL", "PAGER", "GIT_PAGER", "SSH_ASKPASS",
                                 "BASH_ENV", "LD_PRELOAD", "LD_AUDIT"}) {
    EXPECT_EQ(found(name, a), (Names{"scripts/a.sh"})) << name;
  }
  EXPECT_EQ(found("LESSOPEN", "|" + a + " %s"), (Names{"scripts/a.sh"}));
  EXPECT_EQ(found("LD_PRELOAD", "/none.so:" + a), (Names{"scripts/a.sh"}));
  EXPECT_EQ(found("GIT_TEMPLATE_DIR", root_.path + "/none"), (Names{"none"}));
}

TEST_F(GitPrograms, ProgramsOnPathBeforeTheyExist) {
  std::filesystem::create_directories(dir_ / "tree/bin");
  const std::string before = ::getenv("PATH");
  const auto on_path = [&](const std::string& path, const std::string& text) {
    ::setenv("PATH", path.c_str(), 1);
    Names names = Read(text).on_path;
    ::setenv("PATH", before.c_str(), 1);
    return names;
  };
  const std::string bin = root_.path + "/bin:/usr/bin";
  const std::string editor = "[core]\n\teditor = ed -w\n";
  EXPECT_EQ(on_path("/usr/bin", editor), Names()) << "NO-CONTROL";
  EXPECT_EQ(on_path(bin, editor), (Names{"bin/ed"}));
  EXPECT_EQ(on_path("bin:/usr/bin", editor), (Names{"bin/ed"}));
  EXPECT_EQ(on_path(":/usr/bin", editor), (Names{"ed"})) << "the working directory";
  EXPECT_EQ(on_path(bin, "[filter \"x\"]\n\tclean = X=1 f %f | g\n"), (Names{"bin/f", "bin/g"}));
  EXPECT_EQ(on_path(bin, "[pager]\n\tlog = l\n[alias]\n\tx = !m a\n\ty = log\n"),
            (Names{"bin/l", "bin/m"}));
  EXPECT_EQ(on_path(bin, "[credential]\n\thelper = keep --x\n"),
            (Names{"bin/git-credential-keep"}));
  // Values that are no programs.
  EXPECT_EQ(on_path(bin, "[init]\n\tdefaultBranch = main\n[core]\n\tautocrlf = input\n"), Names());
}

TEST_F(GitPrograms, APathThatNeedNotBeThereIsAPath) {
  EXPECT_EQ(Find("[core]\n\thooksPath = :(optional)none/hooks\n"), (Names{"none/hooks"}));
  EXPECT_EQ(Find("[include]\n\tpath = :(optional)../team\n"), (Names{"team"}));
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
  EXPECT_EQ(Find("[core]\n\thooksPath =\n[init]\n\ttemplateDir =\n"), Names());
  // A program of PATH, an argument that is a file.
  EXPECT_EQ(Find("[merge]\n\ttool = main\n[alias]\n\tx = log main\n"), Names());
  EXPECT_EQ(Find("[core]\n\tpager = less main\n"), (Names{"main"}));
}

// Then every file at the top may be a hook.
TEST_F(GitPrograms, ADirectoryOfHooksMayBeTheProjectItself) {
  EXPECT_EQ(Find("[core]\n\thooksPath = .\n"), Names{"."});
  EXPECT_EQ(Find("[filter \"x\"]\n\tclean = .\n"), Names());
}

// A link from outside counts, as itself: it leads over others.
TEST_F(GitPrograms, PathsOutsideThatLeadIntoTheProject) {
  std::filesystem::create_directories(dir_ / "hooks");
  std::filesystem::create_symlink("../tree/scripts/a.sh", dir_ / "hooks/pre-commit");
  std::filesystem::create_symlink("tree/scripts", dir_ / "tools");
  EXPECT_EQ(Find("[core]\n\thooksPath = ../hooks\n"), Names{dir_ / "hooks/pre-commit"});
  EXPECT_EQ(Find("[core]\n\tfsmonitor = ../tools/b.sh -x\n"), Names{dir_ / "tools/b.sh"});
  EXPECT_EQ(Find("[core]\n\tfsmonitor = ../hooks/none\n"), Names());
  EXPECT_EQ(Find("[core]\n\tfsmonitor = ../tools/none\n"), Names());
  EXPECT_EQ(FindToCome("[core]\n\tfsmonitor = ../tools/none\n"), Names{dir_ / "tools/none"});
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
