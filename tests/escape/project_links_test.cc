// SPDX-License-Identifier: Apache-2.0
//
// A project that lies in something larger: programs of the host reach its files over links that are not in it. A payload
// writes to such a file under the name that it has in the project. Each attack is run without the links too, where the
// file is writable, and in a plain mount, where the program of the host gets what the payload wrote.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/host.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

namespace fs = std::filesystem;

struct Link {
  const char* at;  // relative to the directory that holds everything; the project is whole/sub
  const char* to;
};

struct LinkAttack {
  const char* name;
  std::vector<Link> links;
  const char* script;    // writes "evil"
  const char* run;       // what a program of the host reads
  const char* config{};  // of the repository around the project
};

const LinkAttack kLinkAttacks[] = {
    {"Hook",
     {{"whole/.git/hooks/pre-commit", "../../sub/scripts/check.sh"}},
     "echo evil > scripts/check.sh",
     "whole/.git/hooks/pre-commit"},
    {"HookThatIsReplaced",
     {{"whole/.git/hooks/pre-commit", "../../sub/scripts/check.sh"}},
     "mv scripts s; mkdir scripts; echo evil > scripts/check.sh",
     "whole/.git/hooks/pre-commit"},
    {"AllHooks",
     {{"whole/.git/hooks", "../sub/scripts"}},
     "echo evil > scripts/pre-commit",
     "whole/.git/hooks/pre-commit"},
    {"HooksInADirectoryOfTheirs",
     {{"whole/.git/hooks/pre-commit.d", "../../sub/scripts"}},
     "echo evil > scripts/check.sh",
     "whole/.git/hooks/pre-commit.d/check.sh"},
    {"HookThatIsNotThereYet",
     {{"whole/.git/hooks/pre-commit", "../../sub/new/check.sh"}},
     "mkdir new; echo evil > new/check.sh",
     "whole/.git/hooks/pre-commit"},
    {"Configuration",
     {{"whole/.git/config.worktree", "../sub/scripts/check.sh"}},
     "echo evil > scripts/check.sh",
     "whole/.git/config.worktree"},
    {"Settings",
     {{"whole/.vscode/tasks.json", "../sub/scripts/check.sh"}},
     "echo evil > scripts/check.sh",
     "whole/.vscode/tasks.json"},
    {"SettingsAsAWhole",
     {{"whole/.idea", "sub/scripts"}},
     "echo evil > scripts/check.sh",
     "whole/.idea/check.sh"},
    {"DeeperSettings",
     {{"whole/.claude/skills/x", "../../sub/scripts"}},
     "echo evil > scripts/check.sh",
     "whole/.claude/skills/x/check.sh"},
    {"OwnHooks",
     {{"whole/.husky/pre-commit", "../sub/scripts/check.sh"}},
     "echo evil > scripts/check.sh",
     "whole/.husky/pre-commit"},
    {"FileOfAShell",
     {{"whole/.envrc", "sub/scripts/check.sh"}},
     "echo evil > scripts/check.sh",
     "whole/.envrc"},
    {"FarAbove",
     {{".vscode/tasks.json", "../whole/sub/scripts/check.sh"}},
     "echo evil > scripts/check.sh",
     ".vscode/tasks.json"},
    {"Chain",
     {{"whole/.git/hooks/pre-commit", "../../tools/check"},
      {"whole/tools/check", "../sub/scripts/check.sh"}},
     "echo evil > scripts/check.sh",
     "whole/.git/hooks/pre-commit"},
    {"ChainThroughTheProject",
     {{"whole/.git/hooks/pre-commit", "../../tools/check"},
      {"whole/tools/check", "../sub/hop"},
      {"whole/sub/hop", "../tools/honest"}},
     "rm -f hop; echo evil > hop",
     "whole/.git/hooks/pre-commit"},
    {"UpAndDown",
     {{"whole/.git/hooks/pre-commit", "../../sub/scripts/../other/check.sh"}},
     "mkdir -p e/f e/other; echo evil > e/other/check.sh; mv scripts s; ln -s e/f scripts",
     "whole/.git/hooks/pre-commit"},
    {"UpAndDownInTheProject",
     {{"whole/sub/.vscode/tasks.json", "../scripts/../other/check.sh"}},
     "mkdir -p e/f e/other; echo evil > e/other/check.sh; mv scripts s; ln -s e/f scripts",
     "whole/sub/.vscode/tasks.json"},
    {"Submodule",
     {{"whole/.git/modules/a/b/hooks/pre-commit", "../../../../../sub/scripts/check.sh"}},
     "echo evil > scripts/check.sh",
     "whole/.git/modules/a/b/hooks/pre-commit"},
    {"HooksPath",
     {{"whole/tools/pre-commit", "../sub/scripts/check.sh"}},
     "echo evil > scripts/check.sh",
     "whole/tools/pre-commit",
     "[core]\n\thooksPath = tools\n"},
    {"ProgramBehindALink",
     {{"whole/tools/all", "../sub/scripts"}},
     "echo evil > scripts/check.sh",
     "whole/tools/all/check.sh",
     "[core]\n\tfsmonitor = tools/all/check.sh\n"},
};

class ProjectLinks : public HostWatchTest, public ::testing::WithParamInterface<LinkAttack> {
 protected:
  static void Put(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(path).parent_path());
    FILE* const file = fopen(path.c_str(), "w");
    ASSERT_NE(file, nullptr) << path;
    fputs(text.c_str(), file);
    fclose(file);
  }
  static void MakeGit(const std::string& path) {
    fs::create_directories(path + "/objects");
    fs::create_directories(path + "/refs");
    Put(path + "/HEAD", "ref: refs/heads/main\n");
    Put(path + "/config", "[core]\n\trepositoryformatversion = 0\n");
  }
  std::string MakeWhole(const std::string& name) {
    const std::string all = dir_ / name;
    MakeGit(all + "/whole/.git");
    MakeGit(all + "/whole/.git/modules/a/b");
    Put(all + "/whole/sub/scripts/check.sh", "true\n");
    Put(all + "/whole/sub/other/check.sh", "true\n");
    Put(all + "/whole/tools/honest", "true\n");
    return all;
  }
  static void MakeLinks(const std::string& all, const LinkAttack& attack) {
    for (const Link& link : attack.links) {
      const fs::path at = all + "/" + link.at;
      fs::create_directories(at.parent_path());
      fs::create_symlink(link.to, at);
    }
    if (attack.config != nullptr) {
      Put(all + "/whole/.git/config", attack.config);
    }
  }
  static RunResult InProject(const std::string& root, const std::string& script,
                             const std::vector<std::string>& flags = {}) {
    std::vector<std::string> all = {"--project", root};
    all.insert(all.end(), flags.begin(), flags.end());
    return RunCoffer(all, {"sh", "-c", script + "; echo it-ran"});
  }
  static RunResult InPlainMount(const std::string& root, const std::string& script) {
    return RunCoffer({"--rw", root, "--runtime", "host-usr", "--cwd", root}, {"sh", "-c", script});
  }
  static bool IsPlanted(const std::string& file) {
    return Contains(ReadFile(file).value_or(""), "evil");
  }

  TempDir dir_;
};

TEST_P(ProjectLinks, LeadToNothingThatThePayloadWrote) {
  const LinkAttack& attack = GetParam();
  const std::string open = MakeWhole("open");
  MakeLinks(open, attack);
  const RunResult control = InPlainMount(open + "/whole/sub", attack.script);
  EXPECT_TRUE(IsPlanted(open + "/" + attack.run)) << "NO-CONTROL: " << control.Describe();
  // The project does not protect the file for another reason.
  if (std::string(attack.name) != "ChainThroughTheProject") {  // what it writes to is a link itself
    const std::string plain = MakeWhole("plain");
    const RunResult unlinked = InProject(plain + "/whole/sub", attack.script);
    MakeLinks(plain, attack);
    EXPECT_TRUE(IsPlanted(plain + "/" + attack.run)) << "NO-CONTROL: " << unlinked.Describe();
  }

  // Also if what lies around the project is shown.
  for (const bool shown : {false, true}) {
    const std::string all = MakeWhole(shown ? "shown" : "all");
    MakeLinks(all, attack);
    std::vector<std::string> flags;
    if (shown) {
      flags = {"--ro", all + "/whole"};
    }
    const RunResult result =
        InProject(all + "/whole/sub", attack.script + std::string("; echo x > new.txt"), flags);
    EXPECT_TRUE(Contains(result.out, "it-ran")) << result.Describe();
    EXPECT_TRUE(Exists(all + "/whole/sub/new.txt")) << result.Describe();
    EXPECT_FALSE(IsPlanted(all + "/" + attack.run)) << "OPEN\n" << result.Describe();
  }
}

INSTANTIATE_TEST_SUITE_P(All, ProjectLinks, ::testing::ValuesIn(kLinkAttacks),
                         [](const auto& attack) { return std::string(attack.param.name); });

using ProjectLinksAround = ProjectLinks;

// What lies around a project and is shown with --ro: neither its repository nor the directories between change.
TEST_F(ProjectLinksAround, WhatIsShownAroundAProjectCannotBeChanged) {
  struct Attack {
    const char* script;  // in whole/sub/deep
    const char* run;
  };
  const Attack attacks[] = {
      {"mkdir -p ../../.git/hooks; echo evil > ../../.git/hooks/pre-commit",
       ".git/hooks/pre-commit"},
      {"echo evil >> ../../.git/config", ".git/config"},
      {"echo evil > ../../tools/honest", "tools/honest"},
      {"rm -f ../../tools/honest; echo evil > ../../tools/honest", "tools/honest"},
      {"ln ../../tools/honest x && echo evil > x", "tools/honest"},
      {"mv ../../tools ../../t; mkdir ../../tools; echo evil > ../../tools/honest", "tools/honest"},
      {"cd ../..; mv sub s; mkdir -p sub/deep/.vscode; echo evil > sub/deep/.vscode/tasks.json",
       "sub/deep/.vscode/tasks.json"},
      {"cd ..; mv deep d; mkdir -p deep/.git/hooks; echo evil > deep/.git/hooks/pre-commit",
       "sub/deep/.git/hooks/pre-commit"},
      {"mkdir -p .vscode; echo evil > .vscode/tasks.json", "sub/deep/.vscode/tasks.json"},
  };
  size_t count = 0;
  for (const Attack& attack : attacks) {
    SCOPED_TRACE(attack.script);
    const std::string all = MakeWhole("around" + std::to_string(++count));
    const std::string deep = all + "/whole/sub/deep";
    Put(deep + "/file", "x\n");
    const RunResult result = InProject(
        deep, std::string("echo x > new.txt; (") + attack.script + ")", {"--ro", all + "/whole"});
    EXPECT_TRUE(Contains(result.out, "it-ran")) << result.Describe();
    EXPECT_TRUE(Exists(deep + "/new.txt")) << result.Describe();
    EXPECT_FALSE(IsPlanted(all + "/whole/" + attack.run)) << "OPEN\n" << result.Describe();
    const RunResult control =
        RunCoffer({"--rw", all + "/whole", "--runtime", "host-usr", "--cwd", deep},
                  {"sh", "-c", attack.script});
    EXPECT_TRUE(IsPlanted(all + "/whole/" + attack.run)) << "NO-CONTROL: " << control.Describe();
  }
}

// A repository above the project decides nothing: it is shown if the caller's words name it.
TEST_F(ProjectLinksAround, APlantedRepositoryAboveBringsNothingIn) {
  const std::string all = MakeWhole("planted");
  const std::string root = all + "/whole/sub";
  Put(all + "/whole/secret", "secret-value\n");
  const std::string script = "cat ../secret ../.git/config || true";
  const RunResult hidden = InProject(root, script);
  EXPECT_FALSE(Contains(hidden.out, "secret-value")) << "OPEN\n" << hidden.Describe();
  EXPECT_FALSE(Contains(hidden.out, "repositoryformatversion")) << "OPEN\n" << hidden.Describe();
  const RunResult control = InProject(root, script, {"--ro", all + "/whole"});
  EXPECT_TRUE(Contains(control.out, "secret-value")) << "NO-CONTROL: " << control.Describe();
  EXPECT_TRUE(Contains(control.out, "repositoryformatversion")) << control.Describe();
}

// The git directory of a linked worktree or a submodule, whose hooks lead into the working tree; whether it points back
// and is shown, or not.
TEST_F(ProjectLinksAround, HooksOfAPointedGitDirectoryLeadToNothing) {
  for (const bool back : {true, false}) {
    for (const bool worktree : {true, false}) {
      SCOPED_TRACE(std::string(worktree ? "worktree" : "submodule") + (back ? " and back" : ""));
      const std::string all = dir_ / (std::string(worktree ? "w" : "s") + (back ? "1" : "0"));
      const std::string root = all + "/tree";
      const std::string repository = all + "/whole/.git";
      MakeGit(repository);
      const std::string git = repository + (worktree ? "/worktrees/tree" : "/modules/tree");
      if (worktree) {
        Put(git + "/HEAD", "ref: refs/heads/tree\n");
        Put(git + "/commondir", "../..\n");
        Put(git + "/gitdir", (back ? root : all) + "/.git\n");
      } else {
        MakeGit(git);
        Put(git + "/config", "[core]\n\tworktree = " + (back ? root : all) + "\n");
      }
      Put(root + "/.git", "gitdir: " + git + "\n");
      const auto planted = [&] {
        Put(root + "/scripts/check.sh", "true\n");
        const RunResult result = InProject(root, "echo evil > scripts/check.sh");
        EXPECT_TRUE(Contains(result.out, "it-ran")) << result.Describe();
        return IsPlanted(root + "/scripts/check.sh");
      };
      EXPECT_TRUE(planted()) << "NO-CONTROL";
      const std::string hooks = (worktree ? repository : git) + "/hooks";
      fs::create_directories(hooks);
      fs::create_symlink(root + "/scripts/check.sh", hooks + "/pre-commit");
      EXPECT_FALSE(planted()) << "OPEN";
    }
  }
}

// The repository around keeps its hooks in the project, in a directory that is no repository by itself.
TEST_F(ProjectLinksAround, HooksOfACommonDirectoryInTheProjectLeadToNothing) {
  const std::string root = dir_ / "whole/sub";
  const std::string hook = root + "/common/hooks/pre-commit";
  const auto planted = [&](const std::string& script) {
    const RunResult result = InProject(root, script);
    EXPECT_TRUE(Contains(result.out, "it-ran")) << result.Describe();
    return IsPlanted(hook);
  };
  const std::string replace = "echo evil > common/hooks/pre-commit";
  MakeGit(dir_ / "whole/.git");
  fs::create_directories(root + "/common/objects");
  fs::create_directories(root + "/common/refs");
  Put(hook, "true\n");
  EXPECT_TRUE(planted(replace)) << "NO-CONTROL";
  Put(hook, "true\n");
  Put(dir_ / "whole/.git/commondir", "../sub/common\n");
  EXPECT_FALSE(planted(replace)) << "OPEN";
  fs::remove_all(root + "/common/hooks");
  EXPECT_FALSE(planted("mkdir common/hooks; " + replace)) << "OPEN: it was not there before";
}

// The git directory is writable in the call as well, and a setting of the project leads there.
TEST_F(ProjectLinksAround, SettingsThatLeadIntoTheGitDirectoryAreReadOnly) {
  const std::string root = dir_ / "tree";
  const std::string repository = dir_ / "whole/.git";
  const std::string record = repository + "/worktrees/tree";
  MakeGit(repository);
  Put(record + "/HEAD", "ref: refs/heads/tree\n");
  Put(record + "/commondir", "../..\n");
  Put(record + "/gitdir", root + "/.git\n");
  Put(root + "/.git", "gitdir: " + record + "\n");
  const auto planted = [&] {
    Put(repository + "/info/tasks.json", "{}");
    const RunResult result = InProject(root, "echo evil > " + repository + "/info/tasks.json");
    EXPECT_TRUE(Contains(result.out, "it-ran")) << result.Describe();
    return IsPlanted(repository + "/info/tasks.json");
  };
  EXPECT_TRUE(planted()) << "NO-CONTROL";
  fs::create_directories(root + "/.vscode");
  fs::create_symlink(repository + "/info/tasks.json", root + "/.vscode/tasks.json");
  EXPECT_FALSE(planted()) << "OPEN";
}

// Then every file of the project is a hook or a setting.
TEST_F(ProjectLinksAround, AProjectThatIsItselfWhatTheHostRunsIsRefused) {
  const std::string all = MakeWhole("all");
  const std::string root = all + "/whole/sub";
  EXPECT_EQ(InProject(root, "true").exit, 0) << "NO-CONTROL";
  const auto refused = [&](const std::string& what) {
    const RunResult result = InProject(root, "echo evil > pre-commit");
    EXPECT_EQ(result.ErrorClass(), "policy.project.link") << what << result.Describe();
    EXPECT_FALSE(Exists(root + "/pre-commit")) << what;
  };
  fs::create_symlink("../sub", all + "/whole/.git/hooks");
  refused("hooks");
  fs::remove(all + "/whole/.git/hooks");
  Put(all + "/whole/.git/config", "[core]\n\thooksPath = sub\n");
  refused("hooksPath");
  Put(all + "/whole/.git/config", "[core]\n\thooksPath =\n[init]\n\ttemplateDir =\n");
  EXPECT_EQ(InProject(root, "true").exit, 0) << "no directory";
  // One among many that a program reads there: the caller is told.
  fs::create_directories(all + "/whole/.claude/skills");
  fs::create_symlink("../../sub", all + "/whole/.claude/skills/own");
  const RunResult told = InProject(root, "true");
  EXPECT_EQ(told.exit, 0) << told.Describe();
  EXPECT_TRUE(Contains(told.err, ".claude/skills/own leads to this project as a whole"))
      << told.Describe();
}

// A second name of a file is no link: the caller is told that there is one.
TEST_F(ProjectLinksAround, ASecondNameAmongTheHooksAroundIsTold) {
  const std::string all = MakeWhole("all");
  const std::string root = all + "/whole/sub";
  const RunResult control = InProject(root, "true");
  EXPECT_FALSE(Contains(control.err, "hard links")) << "NO-CONTROL: " << control.Describe();
  fs::create_directories(all + "/whole/.git/hooks");
  fs::create_hard_link(root + "/scripts/check.sh", all + "/whole/.git/hooks/pre-commit");
  const RunResult result = InProject(root, "true");
  EXPECT_TRUE(Contains(result.err, "hard links")) << result.Describe();
}

// What agents read in the directories above is writable where it leads into the project, and the caller is told.
TEST_F(ProjectLinksAround, ChangesOfInstructionsAboveAreTold) {
  const std::string all = MakeWhole("all");
  const std::string root = all + "/whole/sub";
  Put(root + "/docs/rules.md", "be kind\n");
  const auto told = [&] {
    const RunResult result = InProject(root, "echo evil >> docs/rules.md");
    return Contains(result.err, "whole/AGENTS.md has changed");
  };
  EXPECT_FALSE(told()) << "NO-CONTROL";
  fs::create_symlink("sub/docs/rules.md", all + "/whole/AGENTS.md");
  EXPECT_TRUE(told());
  EXPECT_FALSE(Contains(InProject(root, "true").err, "AGENTS.md")) << "it has not changed";
}

}  // namespace
}  // namespace coffer::test
