// SPDX-License-Identifier: Apache-2.0
//
// A payload that may write to a project tries to leave something that the host runs later. Each attack is run twice: in
// a plain writable mount, where it works, and in a project, where nothing of it may be left at its place.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "base/hash.h"
#include "tests/support/host.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

namespace fs = std::filesystem;

class ProjectEscape : public HostWatchTest {
 protected:
  // A repository with a submodule's git directory, settings, a link among them, and a package.
  std::string MakeProject(const std::string& name) {
    const std::string root = dir_ / name;
    MakeGit(root + "/.git");
    MakeGit(root + "/.git/modules/lib");
    Put(root + "/.git/config",
        "[core]\n\thooksPath = tools/hooks ; ours\n[include]\n\tpath = ../team.gitconfig\n"
        "[filter \"x\"]\n\tclean = \"sh scripts/clean.sh %f\"\n"
        "[submodule \"s\"]\n\tupdate = !scripts/update.sh\n[init]\n\ttemplateDir = template\n");
    Put(root + "/scripts/update.sh", "true\n");
    Put(root + "/own.code-workspace", "{}");
    Put(root + "/lefthook.yml", "pre-commit: {}\n");
    Put(root + "/team.gitconfig", "[diff \"x\"]\n\tcommand = tools/diff.sh\n");
    Put(root + "/scripts/clean.sh", "cat\n");
    Put(root + "/tools/diff.sh", "cat\n");
    // The record of a worktree that lies elsewhere.
    Put(root + "/.git/worktrees/other/HEAD", "ref: refs/heads/other\n");
    Put(root + "/.git/worktrees/other/commondir", "../..\n");
    Put(root + "/.git/worktrees/other/gitdir", dir_ / "other/.git\n");
    Put(root + "/.git/modules/lib/sl/config", "[ui]\n");
    Put(root + "/.vscode/settings.json", "{}");
    Put(root + "/scripts/check.sh", "true\n");
    fs::create_symlink("../../scripts/check.sh", root + "/.git/hooks/pre-push");
    Put(root + "/lib/tasks.json", "{}");
    fs::create_symlink("../lib/tasks.json", root + "/.vscode/tasks.json");
    Put(root + "/shared/settings.json", "{}");
    fs::create_symlink("shared", root + "/.claude");
    // A link to a directory further down, and one over another link.
    Put(root + "/conf/editor/settings.json", "{}");
    fs::create_symlink("conf/editor", root + "/.cursor");
    fs::create_symlink("hop", root + "/.zed");
    fs::create_symlink("shared", root + "/hop");
    Put(root + "/deep/conf/settings.json", "{}");
    fs::create_directories(root + "/deep/pkg");
    fs::create_symlink("../conf", root + "/deep/pkg/.vscode");
    Put(root + "/pkg/.idea/x.xml", "<x/>");
    Put(root + "/deep/conf/tasks.json", "{}");
    fs::create_directories(root + "/deep/app/.vscode");
    fs::create_symlink("../../conf/tasks.json", root + "/deep/app/.vscode/tasks.json");
    Put(root + "/package.json", "{\"scripts\": {\"test\": \"true\"}}");
    return root;
  }
  static void MakeGit(const std::string& path) {
    fs::create_directories(path + "/objects");
    fs::create_directories(path + "/refs");
    fs::create_directories(path + "/hooks");
    Put(path + "/HEAD", "ref: refs/heads/main\n");
    Put(path + "/config", "[core]\n\trepositoryformatversion = 0\n");
  }
  static void Put(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(path).parent_path());
    FILE* const file = fopen(path.c_str(), "w");
    ASSERT_NE(file, nullptr) << path;
    fputs(text.c_str(), file);
    fclose(file);
  }
  static RunResult InProject(const std::string& root, const std::string& script,
                             const Strings& more = {}) {
    Strings flags = {"--project", root};
    flags.insert(flags.end(), more.begin(), more.end());
    return RunCoffer(flags, {"sh", "-c", script});
  }
  // The control: the same without protection.
  static RunResult InPlainMount(const std::string& root, const std::string& script) {
    return RunCoffer({"--rw", root, "--runtime", "host-usr", "--cwd", root}, {"sh", "-c", script});
  }
  static std::set<std::string> Names(const std::string& root) {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      names.insert(entry.path().string().substr(root.size()));
    }
    return names;
  }
  static bool IsPlanted(const std::string& file) {
    return Contains(ReadFile(file).value_or(""), "evil");
  }

  TempDir dir_;
};

struct Attack {
  const char* name;
  const char* script;
  const char* file;  // holds "evil" where it works
};

constexpr Attack kAttacks[] = {
    {"Hook", "echo evil > .git/hooks/pre-commit", ".git/hooks/pre-commit"},
    {"Config", "echo evil >> .git/config", ".git/config"},
    {"ConfigByRename", "cp .git/config c; echo evil >> c; mv c .git/config", ".git/config"},
    {"RenamedGit", "mv .git g; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit",
     ".git/hooks/pre-commit"},
    {"RenamedHooks", "mv .git/hooks h; mkdir .git/hooks; echo evil > .git/hooks/x", ".git/hooks/x"},
    {"CommonDirectory", "rm -f .git/commondir; echo evil > .git/commondir", ".git/commondir"},
    {"WorktreeConfig", "echo evil > .git/config.worktree", ".git/config.worktree"},
    {"HooksElsewhere", "mkdir -p tools/hooks; echo evil > tools/hooks/pre-commit",
     "tools/hooks/pre-commit"},
    {"ModuleConfig", "echo evil >> .git/modules/lib/config", ".git/modules/lib/config"},
    {"RenamedModule",
     "mv .git/modules/lib .git/modules/l; mkdir .git/modules/lib; echo evil > "
     ".git/modules/lib/config",
     ".git/modules/lib/config"},
    {"RenamedModules",
     "mv .git/modules .git/m; mkdir -p .git/modules/lib; echo evil > .git/modules/lib/config",
     ".git/modules/lib/config"},
    {"Settings", "echo evil > .vscode/launch.json", ".vscode/launch.json"},
    {"ReplacedSettings", "rm -rf .vscode; mkdir .vscode; echo evil > .vscode/launch.json",
     ".vscode/launch.json"},
    {"NewSettings", "mkdir -p .idea; echo evil > .idea/workspace.xml", ".idea/workspace.xml"},
    {"NewFile", "rmdir .envrc; echo evil > .envrc", ".envrc"},
    {"NotHeld", "echo evil > .mcp.json", ".mcp.json"},
    {"OwnFile", "rmdir .coffer.toml; echo '# evil' > .coffer.toml", ".coffer.toml"},
    {"ReplacedLink", "rm .claude; mkdir .claude; echo evil > .claude/settings.json",
     ".claude/settings.json"},
    {"MovedOverLink", "mkdir x; echo evil > x/settings.json; ln -s x l; mv -T l .claude",
     ".claude/settings.json"},
    {"BehindLink", "echo evil > shared/settings.json", "shared/settings.json"},
    {"Deep", "mkdir -p a/b/.git/hooks; echo evil > a/b/.git/hooks/x", "a/b/.git/hooks/x"},
    {"DeepFile", "mkdir -p a; echo 'gitdir: /evil' > a/.git", "a/.git"},
    {"OtherCase", "mkdir -p a/.Git/hooks; echo evil > a/.Git/hooks/x", "a/.Git/hooks/x"},
    {"BareRepository",
     "mkdir -p a/objects a/refs; echo evil > a/config; echo 'ref: refs/heads/evil' > a/HEAD",
     "a/HEAD"},
    {"BareProject",
     "rm .git/HEAD; mkdir objects refs; echo evil > config; echo 'ref: refs/heads/evil' > HEAD",
     "HEAD"},
    {"MovedPackage", "mv pkg p; mkdir -p pkg/.idea; echo evil > pkg/.idea/x.xml",
     "pkg/.idea/x.xml"},
    {"ClosedDirectory", "mkdir -p a/.git/hooks; echo evil > a/.git/hooks/x; chmod 0 a/.git a",
     "a/.git/hooks/x"},
    {"LinkToIt", "mkdir e; echo evil > e/tasks.json; mkdir a; ln -s ../e a/.vscode",
     "a/.vscode/tasks.json"},
    {"SecondName", "ln .git/config c; echo evil >> c", ".git/config"},
    {"ModeOfAPlaceholder", "mkdir .codex; echo evil > .codex/config.toml; chmod 01555 .codex",
     ".codex/config.toml"},
    {"ClosedParent", "mkdir -p a/.vscode; echo evil > a/.vscode/tasks.json; chmod 0555 a",
     "a/.vscode/tasks.json"},
    {"OneThatLiesTooDeep",
     "n=$(printf %0200d 0); p=; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do p=$p$n/; done; mkdir -p "
     "a/.vscode d/$p e/$p/.vscode; echo evil > a/.vscode/tasks.json; mv e d/$p",
     "a/.vscode/tasks.json"},
    {"RecordOfAWorktree", "echo evil > .git/worktrees/other/commondir",
     ".git/worktrees/other/commondir"},
    {"RenamedRecord",
     "mv .git/worktrees .git/w; mkdir -p .git/worktrees/other; echo evil > "
     ".git/worktrees/other/commondir",
     ".git/worktrees/other/commondir"},
    {"BareRepositoryInTwoParts",
     "mkdir -p a b/objects b/refs; echo evil > b/config; echo ../b > a/commondir; echo 'ref: "
     "refs/heads/evil' > a/HEAD",
     "a/HEAD"},
    {"BehindAnotherRepository",
     "mkdir -p a/objects a/refs a/hooks/.vscode; echo x > a/HEAD; echo evil > "
     "a/hooks/.vscode/tasks.json",
     "a/hooks/.vscode/tasks.json"},
    {"MovedTarget", "mv conf c; mkdir -p conf/editor; echo evil > conf/editor/settings.json",
     ".cursor/settings.json"},
    {"LinkOnTheWay", "mkdir e; echo evil > e/settings.json; rm hop; ln -s e hop",
     ".zed/settings.json"},
    {"MovedLink", "mkdir -p e/conf; echo evil > e/conf/settings.json; mv deep/pkg e/",
     "e/pkg/.vscode/settings.json"},
    {"MovedHooks", "mkdir -p tools; mv tools t; mkdir -p tools/hooks; echo evil > tools/hooks/x",
     "tools/hooks/x"},
    {"HooksBehindALink", "rm -rf tools; mkdir -p e/hooks; ln -s e tools; echo evil > tools/hooks/x",
     "tools/hooks/x"},
    {"HookThatIsALink", "echo evil > scripts/check.sh", ".git/hooks/pre-push"},
    {"MovedHookThatIsALink", "mv scripts s; mkdir scripts; echo evil > scripts/check.sh",
     ".git/hooks/pre-push"},
    {"SettingsThatAreALink", "rm lib/tasks.json; echo evil > lib/tasks.json", ".vscode/tasks.json"},
    {"MovedSettingsThatHoldALink", "mkdir -p e/conf; echo evil > e/conf/tasks.json; mv deep/app e/",
     "e/app/.vscode/tasks.json"},
    {"Filter", "echo evil > scripts/clean.sh", "scripts/clean.sh"},
    {"MovedFilter", "mv scripts s; mkdir scripts; echo evil > scripts/clean.sh",
     "scripts/clean.sh"},
    {"IncludedConfig", "echo evil >> team.gitconfig", "team.gitconfig"},
    {"ProgramOfTheIncludedConfig", "echo evil > tools/diff.sh", "tools/diff.sh"},
    {"OtherSystem", "mkdir .hg; echo evil > .hg/hgrc", ".hg/hgrc"},
    {"AnotherSystem", "mkdir -p sub/_darcs/prefs; echo evil > sub/_darcs/prefs/defaults",
     "sub/_darcs/prefs/defaults"},
    {"SystemOfManyRepositories", "mkdir -p .repo/repo; echo evil > .repo/repo/main.py",
     ".repo/repo/main.py"},
    {"SystemWithHooks", "mkdir -p .pijul/hooks; echo evil > .pijul/hooks/record",
     ".pijul/hooks/record"},
    {"SettingsOfVimsWindow", "echo evil > .gvimrc", ".gvimrc"},
    {"HooksOfRust", "echo evil > .rusty-hook.toml", ".rusty-hook.toml"},
    {"HooksOfAnOlderHusky", "echo evil > .huskyrc.json", ".huskyrc.json"},
    {"LanguageServer", "mkdir -p pkg/.helix; echo evil > pkg/.helix/languages.toml",
     "pkg/.helix/languages.toml"},
    {"ServerOfAnAgent", "echo evil > opencode.json", "opencode.json"},
    {"ServerOfAnotherAgent", "mkdir .amazonq; echo evil > .amazonq/mcp.json", ".amazonq/mcp.json"},
    {"Environment", "echo evil > pkg/mise.toml", "pkg/mise.toml"},
    {"EnvironmentOfOneStage", "echo evil > pkg/mise.test.toml", "pkg/mise.test.toml"},
    {"EnvironmentInItsDirectory", "mkdir -p pkg/mise; echo evil > pkg/mise/config.toml",
     "pkg/mise/config.toml"},
    {"HooksOfAnotherFormat", "echo evil > lefthook.toml", "lefthook.toml"},
    {"HooksBesideTheOwn", "echo evil > lefthook-local.yml", "lefthook-local.yml"},
    {"WorkspaceFile", "echo evil > new.code-workspace", "new.code-workspace"},
    {"OwnWorkspaceFile", "rm own.code-workspace; echo evil > own.code-workspace",
     "own.code-workspace"},
    {"HooksOfAnAgent", "mkdir -p .github/hooks; echo evil > .github/hooks/x.json",
     ".github/hooks/x.json"},
    {"SecondLocals", "echo evil > pkg/.dir-locals-2.el", "pkg/.dir-locals-2.el"},
    {"Debugger", "echo evil > .pdbrc", ".pdbrc"},
    {"SettingsOfVimsServer", "mkdir .vim; echo evil > .vim/coc-settings.json",
     ".vim/coc-settings.json"},
    {"UpdateOfASubmodule", "echo evil > scripts/update.sh", "scripts/update.sh"},
    {"TemplateOfRepositories", "mkdir -p template/hooks; echo evil > template/hooks/x",
     "template/hooks/x"},
    {"EnvironmentOfAnotherCase", "echo evil > pkg/Mise.Local.toml", "pkg/Mise.Local.toml"},
    // A shell that is led there finds a repository, as its prompt does by itself.
    {"BareRepositoryAmongLogs",
     "d=.git/logs/a; mkdir -p $d/objects $d/refs; echo evil > $d/config; "
     "echo 'ref: refs/heads/evil' > $d/HEAD; ln -s $d docs",
     "docs/HEAD"},
    {"BareRepositoryAmongObjects",
     "d=.git/objects/ab/c; mkdir -p $d/objects $d/refs; echo evil > $d/config; "
     "echo 'ref: refs/heads/evil' > $d/HEAD; ln -s $d docs",
     "docs/HEAD"},
    {"WorktreeAmongRefs",
     "d=.git/modules/lib/refs/a; mkdir -p $d; echo 'gitdir: /evil' > $d/.git; ln -s $d docs",
     "docs/.git"},
    {"SettingsAmongLogs",
     "d=.git/logs/a; mkdir -p $d/.vscode; echo evil > $d/.vscode/tasks.json; ln -s $d docs",
     "docs/.vscode/tasks.json"},
    // Git writes the message of a commit, and the line of a log, where these lead.
    {"MessageThatIsALink", "echo evil > e; ln -s ../e .git/COMMIT_EDITMSG", ".git/COMMIT_EDITMSG"},
    {"LogThatIsALink", "echo evil > e; mkdir -p .git/logs; ln -s ../../e .git/logs/HEAD",
     ".git/logs/HEAD"},
    {"LogsThatAreALink",
     "mkdir -p e .git/modules/lib/logs; echo evil > e/x; ln -s ../../../../e "
     ".git/modules/lib/logs/refs",
     ".git/modules/lib/logs/refs/x"},
    {"LazygitInTheGitDirectory", "echo evil > .git/lazygit.yml", ".git/lazygit.yml"},
    {"LazygitAboveARepository", "echo evil > .lazygit.yml", ".lazygit.yml"},
    {"GlabOfAModule",
     "mkdir .git/modules/lib/glab-cli; echo evil > .git/modules/lib/glab-cli/config.yml",
     ".git/modules/lib/glab-cli/config.yml"},
    {"SaplingInTheGitDirectory", "mkdir .git/sl; echo evil > .git/sl/config", ".git/sl/config"},
    {"SaplingThatWasThere", "echo evil >> .git/modules/lib/sl/config",
     ".git/modules/lib/sl/config"},
    {"Transcrypt", "mkdir .git/crypt; echo evil > .git/crypt/transcrypt", ".git/crypt/transcrypt"},
    // A working copy says what `svn cleanup` moves where, and which settings `fossil diff` starts.
    {"Subversion", "mkdir .svn; echo evil > .svn/wc.db", ".svn/wc.db"},
    {"Fossil", "mkdir part; echo evil > part/.fslckout", "part/.fslckout"},
    {"Rope", "mkdir -p pkg/.ropeproject; echo evil > pkg/.ropeproject/config.py",
     "pkg/.ropeproject/config.py"},
    {"KeptEnvironment", "mkdir -p .direnv; echo evil > .direnv/flake-profile-0a.rc",
     ".direnv/flake-profile-0a.rc"},
    // What an editor starts when it opens the project, or saves a file.
    {"BuildServer", "mkdir .bsp; echo evil > .bsp/x.json", ".bsp/x.json"},
    {"BuildServerOfSwift", "echo evil > buildServer.json", "buildServer.json"},
    {"CradleOfHaskell", "echo evil > pkg/hie.yaml", "pkg/hie.yaml"},
    {"ServerOfClojure", "mkdir -p pkg/.lsp; echo evil > pkg/.lsp/config.edn",
     "pkg/.lsp/config.edn"},
    {"ScriptOfLiteXl", "echo evil > .lite_project.lua", ".lite_project.lua"},
    {"ProjectOfSublimeText", "echo evil > x.sublime-project", "x.sublime-project"},
    {"FlagsOfYouCompleteMe", "echo evil > pkg/.ycm_extra_conf.py", "pkg/.ycm_extra_conf.py"},
    {"BuildersOfEclipse", "echo evil > .project", ".project"},
    {"ProcessorsOfEclipse", "echo evil > .factorypath", ".factorypath"},
    {"OptionsOfCtags", "mkdir .ctags.d; echo evil > .ctags.d/x.ctags", ".ctags.d/x.ctags"},
    // What an interpreter or a debugger reads where it starts.
    {"SavedWorkspaceOfR", "echo evil > pkg/.RData", "pkg/.RData"},
    {"OtherNameOfIrbrc", "echo evil > _irbrc", "_irbrc"},
    {"IrbrcInConfig", "mkdir -p .config/irb; echo evil > .config/irb/irbrc", ".config/irb/irbrc"},
    {"DebuggerOfPerl", "echo evil > .perldb", ".perldb"},
    {"ShellOfPhp", "echo evil > .psysh.php", ".psysh.php"},
    {"EnvironmentOfProto", "echo evil > .prototools", ".prototools"},
    {"HooksOfHk", "mkdir -p .config; echo evil > .config/hk.pkl", ".config/hk.pkl"},
    {"HooksOfGrumPhp", "echo evil > grumphp.yml.dist", "grumphp.yml.dist"},
    {"RulesOfGitlint", "echo evil > .gitlint", ".gitlint"},
    {"ServerOfGitLab", "mkdir -p .gitlab/duo; echo evil > .gitlab/duo/mcp.json",
     ".gitlab/duo/mcp.json"},
    {"ListedAndNotEntered", "mkdir a; echo evil > a/.envrc; chmod 0444 a", "a/.envrc"},
};

class ProjectAttack : public ProjectEscape, public ::testing::WithParamInterface<Attack> {};

TEST_P(ProjectAttack, LeavesNothingThatTheHostRuns) {
  const Attack& attack = GetParam();
  const std::string open = MakeProject("open");
  const RunResult control = InPlainMount(open, attack.script);
  RunProgram({"/bin/chmod", "-R", "u+rwX", open});
  EXPECT_TRUE(IsPlanted(open + "/" + attack.file)) << "NO-CONTROL: " << control.Describe();

  const std::string root = MakeProject("project");
  const RunResult result = InProject(root, std::string(attack.script) + "; echo it-ran");
  // An ordinary user's call ends with limit.disk once it has closed a directory, perhaps before it says that it ran;
  // what it left is looked at all the same.
  EXPECT_TRUE((result.exit == 0 && Contains(result.out, "it-ran")) ||
              result.ErrorClass() == "limit.disk")
      << result.Describe();
  RunProgram({"/bin/chmod", "-R", "u+rwX", root});
  EXPECT_FALSE(IsPlanted(root + "/" + attack.file)) << result.Describe();
}

INSTANTIATE_TEST_SUITE_P(All, ProjectAttack, ::testing::ValuesIn(kAttacks),
                         [](const auto& attack) { return std::string(attack.param.name); });

// Some names count in one directory only, and that may be the project. In one of settings everything counts.
TEST_F(ProjectEscape, AProjectMayBeADirectoryThatNamesCountIn) {
  const struct {
    std::string project;
    std::string file;
  } kPlaces[] = {{"/.github", "/hooks/x.json"},
                 {"/.config", "/mise/conf.d/x.toml"},
                 {"/.direnv", "/flake-profile-0a.rc"},
                 {"/.gitlab", "/duo/mcp.json"}};
  for (const auto& place : kPlaces) {
    const std::string script = "f=." + place.file + "; mkdir -p ${f%/*}; echo evil > $f";
    const std::string other = dir_ / "open/plain";
    fs::create_directories(other);
    const RunResult control = InProject(other, script);
    EXPECT_TRUE(IsPlanted(other + place.file)) << "NO-CONTROL" << control.Describe();
    const std::string root = dir_ / "whole" + place.project;
    fs::create_directories(root);
    const RunResult result = InProject(root, script);
    EXPECT_FALSE(IsPlanted(root + place.file)) << "OPEN" << result.Describe();
    Put(root + place.file, "{}");
    const RunResult again = InProject(root, script);
    EXPECT_FALSE(IsPlanted(root + place.file)) << "OPEN" << again.Describe();
  }
  for (const std::string settings : {"/.vscode", "/.github/hooks", "/.config/mise", "/.husky"}) {
    const std::string root = dir_ / "whole" + settings;
    fs::create_directories(root + "/worktrees/x");
    const RunResult refused = InProject(root, "echo evil > x");
    EXPECT_EQ(refused.ErrorClass(), "policy.project.link") << "OPEN" << refused.Describe();
    EXPECT_FALSE(Exists(root + "/x"));
    const RunResult below = InProject(root + "/worktrees/x", "echo x > x");
    EXPECT_EQ(below.exit, 0) << below.Describe();
    EXPECT_TRUE(Exists(root + "/worktrees/x/x")) << "NO-CONTROL";
  }
}

TEST_F(ProjectEscape, WhatIsNotProtectedIsWritableAndNothingElseIsLeft) {
  const std::string root = MakeProject("project");
  std::set<std::string> expected = Names(root);
  const RunResult control = InPlainMount(root, "mkdir .idea");
  EXPECT_TRUE(Names(root).contains("/.idea")) << "NO-CONTROL: " << control.Describe();
  fs::remove(root + "/.idea");

  const RunResult result = InProject(
      root,
      "pwd; echo x > out.txt; mkdir -p src; echo x > src/a; echo x > .git/index; rm package.json");
  EXPECT_EQ(result.exit, 0) << result.Describe();
  EXPECT_TRUE(Contains(result.out, root)) << result.Describe();
  for (const char* name : {"/out.txt", "/src", "/src/a", "/.git/index"}) {
    expected.insert(name);
  }
  expected.erase("/package.json");
  EXPECT_EQ(Names(root), expected) << result.Describe();
  EXPECT_TRUE(Contains(result.err, "package.json")) << result.Describe();
}

TEST_F(ProjectEscape, PlantedNamesAreListedSetAsideOrKept) {
  const std::string root = MakeProject("project");
  const char* const script =
      "mkdir -p a/.vscode; echo evil > a/.vscode/tasks.json; mkdir -p .husky";
  const RunResult aside = InProject(root, script);
  EXPECT_EQ(aside.receipt["files"]["planted"], Json::array({"a/.vscode"})) << aside.Describe();
  EXPECT_TRUE(Contains(aside.err, "a/.vscode")) << aside.Describe();
  EXPECT_FALSE(Exists(root + "/a/.vscode"));
  EXPECT_FALSE(Exists(root + "/.husky"));
  bool found = false;
  for (const std::string& name : Names(root)) {
    found = found || (Contains(name, "/.coffer-planted-") && Contains(name, "tasks.json"));
  }
  EXPECT_TRUE(found) << "what was set aside is not lost";

  const RunResult kept = InProject(root, script, {"--keep-planted"});
  EXPECT_TRUE(IsPlanted(root + "/a/.vscode/tasks.json")) << "NO-CONTROL: " << kept.Describe();
  EXPECT_TRUE(Exists(root + "/.husky"));
  EXPECT_EQ(kept.receipt["files"]["planted"].size(), 2U) << kept.Describe();
  EXPECT_TRUE(Contains(kept.err, "--keep-planted")) << kept.Describe();
}

// Only names whose empty directory disturbs no program are held from the start (ProtectedName::held).
TEST_F(ProjectEscape, NamesThatAreNotHeldAreThereUntilTheEnd) {
  const std::string script =
      "for d in .vscode .husky; do mkdir $d && echo made $d; done; touch .mcp.json lefthook.yml; "
      "for f in .mcp.json lefthook.yml; do [ -f $f ] && echo there $f; done; echo it-ran";
  const std::string open = dir_.MakeDir("open");
  const RunResult control = InPlainMount(open, script);
  EXPECT_TRUE(Contains(control.out, "made .vscode\nmade .husky\n")) << control.Describe();
  EXPECT_TRUE(Exists(open + "/.mcp.json")) << "NO-CONTROL: " << control.Describe();

  const std::string root = dir_.MakeDir("project");
  const RunResult result = InProject(root, script);
  EXPECT_EQ(result.out, "there .mcp.json\nthere lefthook.yml\nit-ran\n") << result.Describe();
  EXPECT_EQ(result.receipt["files"]["planted"].get<std::set<std::string>>(),
            (std::set<std::string>{".mcp.json", "lefthook.yml"}))
      << result.Describe();
  for (const char* name : {"/.vscode", "/.husky", "/.mcp.json", "/lefthook.yml"}) {
    EXPECT_FALSE(Exists(root + name)) << name;
  }
}

// An ordinary user cannot look into a directory that the payload closed, nor take anything out of it. The project itself
// is one.
TEST_F(ProjectEscape, AProjectThatThePayloadClosesIsLookedThrough) {
  const std::string plant =
      "mkdir -p a; echo evil > a/.mcp.json; echo evil > .mcp.json; "
      "echo evil >> AGENTS.md; echo it-ran; ";
  // The same access list for what is made later: nothing for anybody (acl(5), as the kernel keeps it).
  const std::string list =
      R"py(python3 -c "import os,struct; e=lambda t: struct.pack('<HHI',t,0,0xffffffff); )py"
      R"py(os.setxattr('.','system.posix_acl_default',struct.pack('<I',2)+e(1)+e(4)+e(32))")py";
  int number = 0;
  for (const std::string& close :
       Strings{"true", "chmod 0555 .", "chmod 0 .", "chmod 0444 .", "chmod 0111 . a", list}) {
    SCOPED_TRACE(close);
    const std::string open = dir_ / ("open" + std::to_string(++number));
    const std::string root = dir_ / ("project" + std::to_string(number));
    for (const std::string& each : {open, root}) {
      fs::create_directories(each);
      Put(each + "/AGENTS.md", "be kind\n");
    }
    const RunResult control = InPlainMount(open, plant + close);
    RunProgram({"/bin/chmod", "-R", "u+rwX", open});
    EXPECT_TRUE(IsPlanted(open + "/.mcp.json")) << "NO-CONTROL" << control.Describe();
    const RunResult result = InProject(root, plant + close);
    EXPECT_TRUE(Contains(result.out, "it-ran")) << result.Describe();
    RunProgram({"/bin/chmod", "-R", "u+rwX", root});
    EXPECT_FALSE(IsPlanted(root + "/.mcp.json")) << "OPEN" << result.Describe();
    EXPECT_FALSE(IsPlanted(root + "/a/.mcp.json")) << "OPEN" << result.Describe();
    EXPECT_EQ(result.receipt["files"]["planted"].size(), 2U) << result.Describe();
    EXPECT_TRUE(Contains(result.err, "AGENTS.md has changed")) << result.Describe();
    EXPECT_FALSE(Exists(root + "/.vscode")) << "a placeholder was left: " << result.Describe();
    const RunResult again = InProject(root, "true");
    EXPECT_EQ(again.exit, 0) << again.Describe();
  }
}

// A list that is cut says so: one name among many is not hidden.
TEST_F(ProjectEscape, TheReceiptSaysHowManyMoreWerePlanted) {
  const std::string root = MakeProject("project");
  const auto planted = [&](const std::string& names) {
    return InProject(root, "for i in " + names + "; do : > $i.code-workspace; done",
                     {"--keep-planted"})
        .receipt["files"]["planted"];
  };
  const Json few = planted("1 2 3");
  EXPECT_EQ(few.size(), 3U) << few;
  const Json many = planted("$(seq 101 400)");
  ASSERT_EQ(many.size(), 256U);
  EXPECT_EQ(many.back(), "and 45 more") << "NO-CONTROL: not all were found, or it is not said";
}

// What a person starts by name stays writable, and the person is told.
TEST_F(ProjectEscape, ChangesOfWhatIsStartedByNameAreTold) {
  const std::string root = MakeProject("project");
  Put(root + "/.npmrc", "fund=false\n");
  Put(root + "/AGENTS.md", "be kind\n");
  fs::create_directories(root + "/.git/rebase-merge");
  Put(root + "/.git/rebase-merge/git-rebase-todo", "pick 1\n");
  const RunResult control = InProject(root, "cat .npmrc; echo x > new.txt");
  EXPECT_FALSE(Contains(control.err, "has changed")) << "NO-CONTROL: " << control.Describe();
  const RunResult result = InProject(
      root,
      "echo script-shell=./evil >> .npmrc; echo evil >> AGENTS.md; ln -s new.txt CLAUDE.md; "
      "echo exec ./evil >> .git/rebase-merge/git-rebase-todo; "
      "echo '{\"scripts\": {\"test\": \"evil\"}}' > package.json");
  for (const std::string& told :
       Strings{".npmrc has changed", "AGENTS.md has changed", "CLAUDE.md has changed",
               "waits in " + root + "/.git and", "the scripts of package.json"}) {
    EXPECT_TRUE(Contains(result.err, told)) << told << result.Describe();
  }
}

// What a program of the host reads: where links lead, and all of a file however large. The call chooses neither what is
// compared nor what is left out.
TEST_F(ProjectEscape, ChangesThatAreHardToReadAreTold) {
  const std::string large = "head -c 1100000 /dev/zero | tr '\\0' ' '";
  const struct {
    std::string name;
    std::string honest;  // as it was before
    std::string change;
    std::string told;
  } kChanges[] = {
      {"LinkedPackage", R"({"name": "x"})",
       R"(echo '{"scripts": {"test": "evil"}}' > e; ln -sf e package.json)",
       "the scripts of package.json"},
      {"LargePackage", R"({"name": "x"})",
       R"((echo '{"scripts": {"test": "evil"}}'; )" + large + ") > package.json",
       "the scripts of package.json"},
      {"LinkedDirectory", "", "mv .cargo c; mkdir e; echo evil > e/config.toml; ln -s e .cargo",
       ".cargo/config.toml has"},
      {"BehindALink", "", "echo evil > docs/agents.md", "AGENTS.md has changed"},
      {"LargeInstructions", "", "(echo evil; " + large + ") > GEMINI.md", "GEMINI.md has changed"},
      {"LargeBefore", "", "echo evil >> CLAUDE.md", "CLAUDE.md has changed"},
      {"Corepack", R"({"name": "x"})",
       R"(echo '{"packageManager": "yarn@https://evil/"}' > package.json)",
       "packageManager in package.json has changed"},
      {"HooksInThePackage", R"({"scripts": {}})",
       R"(echo '{"scripts": {}, "husky": {"hooks": {"pre-commit": "evil"}}}' > package.json)",
       "husky in package.json has changed"},
      {"Variables", "", "echo LD_PRELOAD=./evil > .env", ".env has changed"},
      {"LintStaged", "", "echo evil > .lintstagedrc.json", ".lintstagedrc.json has changed"},
      {"MountsOfContainers", "", "echo evil > compose.override.yml",
       "compose.override.yml has changed"},
      {"AddressesOfSubmodules", "", "echo evil > .gitmodules", ".gitmodules has changed"},
      {"Toolchain", "", "printf '[toolchain]\npath = \"evil\"\n' > rust-toolchain.toml",
       "rust-toolchain.toml has changed"},
  };
  for (const auto& change : kChanges) {
    const std::string root = MakeProject(change.name);
    Put(root + "/package.json", change.honest);
    Put(root + "/.cargo/config.toml", "[build]\n");
    Put(root + "/docs/agents.md", "be kind\n");
    fs::create_symlink("docs/agents.md", root + "/AGENTS.md");
    Put(root + "/CLAUDE.md", std::string(1 << 20, ' ') + "be kind\n");
    const RunResult control = InProject(root, "cat package.json CLAUDE.md > x; echo y > docs/y");
    EXPECT_FALSE(Contains(control.err, "changed")) << "NO-CONTROL: " << control.Describe();
    const RunResult result = InProject(root, change.change);
    EXPECT_EQ(result.exit, 0) << change.name << result.Describe();
    EXPECT_TRUE(Contains(result.err, change.told)) << "OPEN " << change.name << result.Describe();
    const RunResult after = InProject(root, "true");
    EXPECT_FALSE(Contains(after.err, "changed")) << change.name << after.Describe();
  }
}

// Git takes the address of a remote that its configuration does not have from a file that older versions wrote.
TEST_F(ProjectEscape, AddressesBesideTheConfigurationAreTold) {
  if (!Exists("/usr/bin/git")) {
    GTEST_SKIP() << "git is not installed";
  }
  const auto fetch = [](const std::string& root) {
    return RunProgram({"sh", "-c",
                       "cd " + root +
                           " && GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null git -c "
                           "safe.directory='*' fetch"});
  };
  const std::string root = MakeProject("project");
  const std::string script = "mkdir -p .git/remotes; echo URL: /evil > .git/remotes/origin";
  const std::string told = root + "/.git/remotes or branches has changed";
  EXPECT_FALSE(Contains(fetch(root).err, "evil")) << "NO-CONTROL";
  EXPECT_FALSE(Contains(InProject(root, "echo x > .git/FETCH_HEAD").err, "branches has changed"));
  const RunResult result = InProject(root, script);
  EXPECT_TRUE(Contains(fetch(root).err, "evil")) << "NO-CONTROL: git does not read it";
  EXPECT_TRUE(Contains(result.err, told)) << "OPEN\n" << result.Describe();
  EXPECT_FALSE(Contains(InProject(root, "true").err, told)) << "it was there before";
}

// A directory of the project, or one around it, in a second place: there no mount lies over what is protected.
TEST_F(ProjectEscape, ASecondPlaceOpensNothingThatIsProtected) {
  const struct {
    std::string name;
    Strings flags;       // %: the project
    std::string script;  // adds "evil" to `file`
    std::string file;
  } kSecondPlaces[] = {
      {"All", {"--rw", "%:/x"}, "echo evil >> /x/.git/config", "/.git/config"},
      {"Around", {"--rw", "%/..:/x"}, "echo evil >> /x/project/.git/config", "/.git/config"},
      {"GitDirectory", {"--rw", "%/.git:/x"}, "echo evil >> /x/config", "/.git/config"},
      {"InWhatIsProtected", {"--rw", "%/.git/hooks:/x"}, "echo evil > /x/new", "/.git/hooks/new"},
      {"Out", {"--out", "%/pkg"}, "echo evil >> /out/.idea/x.xml", "/pkg/.idea/x.xml"},
      {"WhatALinkLeadsTo",
       {"--out", "%/conf"},
       "echo evil >> /out/editor/settings.json",
       "/conf/editor/settings.json"},
  };
  for (const auto& place : kSecondPlaces) {
    const std::string root = dir_.MakeDir(place.name) + "/project";
    MakeProject(place.name + "/project");
    Strings flags = place.flags;
    const size_t at = flags.back().find('%');
    flags.back().replace(at, 1, root);
    if (const size_t up = flags.back().find("/project/.."); up != std::string::npos) {
      flags.back().replace(up, std::string("/project/..").size(), "");
    }
    const RunResult result = InProject(root, place.script, flags);
    EXPECT_FALSE(IsPlanted(root + place.file)) << "OPEN " << place.name << result.Describe();
    EXPECT_EQ(result.ErrorClass(), "policy.project.overlap") << place.name << result.Describe();
    Strings alone = {"--runtime", "host-usr"};
    alone.insert(alone.end(), flags.begin(), flags.end());
    const RunResult control = RunCoffer(alone, {"sh", "-c", place.script});
    EXPECT_TRUE(IsPlanted(root + place.file)) << "NO-CONTROL " << place.name << control.Describe();
  }
  // A part that holds nothing of the kind is shown, and what is made there is found.
  const std::string root = MakeProject("project");
  const RunResult result =
      InProject(root, "mkdir /out/.vscode; echo evil > /out/.vscode/tasks.json; echo x > /out/made",
                {"--out", root + "/dist"});
  EXPECT_EQ(result.exit, 0) << result.Describe();
  EXPECT_TRUE(Exists(root + "/dist/made")) << result.Describe();
  EXPECT_FALSE(IsPlanted(root + "/dist/.vscode/tasks.json")) << result.Describe();
}

// Git goes on with what lies in its directory, and takes a merge strategy as a part of a program's path: a list that
// only picks commits runs a file of the project. The list need not change, nor need it be the project's own repository.
TEST_F(ProjectEscape, OperationsOfGitThatWaitAreTold) {
  if (!Exists("/usr/bin/git")) {
    GTEST_SKIP() << "git is not installed";
  }
  const auto on_host = [](const std::string& root, const std::string& script) {
    return RunProgram({"sh", "-c",
                       "cd " + root +
                           "; export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null "
                           "GIT_EDITOR=true; " +
                           script});
  };
  const auto make = [&](const std::string& name) {
    std::string root = dir_.MakeDir(name);
    const RunResult made = on_host(
        root,
        "for r in . sub; do mkdir -p $r; (cd $r; git init -qb main; git config user.email a@b; "
        "git config user.name a; echo 1 > f; git add f; git commit -qm 1; git tag first; "
        "echo 2 > f; git commit -qam 2; git checkout -qb other first; echo 3 > g; git add g; "
        "git commit -qm 3; git rev-parse main > ../main); done");
    EXPECT_EQ(made.exit, 0) << made.Describe();
    return root;
  };
  // By hand, as a payload without git can: `s` is a place for the state of git, `p` a pick.
  const std::string plant =
      "p=\"pick $(cat .git/refs/heads/main)\"; mkdir -p 'git-merge-..'; "
      "printf '#!/bin/sh\\necho evil > it-ran\\n' > evil; chmod +x evil; ";
  const std::string pick = plant +
                           "s=.git/sequencer; mkdir $s; cat .git/refs/heads/other > $s/head; "
                           "printf '%s\\n%s\\n' \"$p\" \"$p\" > $s/todo; "
                           "printf '[options]\\nstrategy = ../../evil\\n' > $s/opts; ";
  const std::string plain = make("plain");
  const RunResult control = InPlainMount(plain, pick);
  on_host(plain, "git cherry-pick --continue");
  EXPECT_TRUE(IsPlanted(plain + "/it-ran")) << "NO-CONTROL: " << control.Describe();

  const std::string told = "a rebase, cherry-pick or revert waits in ";
  const std::string root = make("project");
  const RunResult nothing = InProject(root, "git log --oneline; git cherry-pick main; echo done");
  EXPECT_TRUE(Contains(nothing.out, "done")) << nothing.Describe();
  EXPECT_FALSE(Contains(nothing.err, told)) << nothing.Describe();
  const RunResult first = InProject(root, pick);
  EXPECT_TRUE(Contains(first.err, told + root + "/.git and")) << "OPEN\n" << first.Describe();
  const RunResult second = InProject(root, "true");
  EXPECT_FALSE(Contains(second.err, told)) << "it was there before\n" << second.Describe();
  const RunResult nested = InProject(root, "cd sub; " + pick);
  EXPECT_TRUE(Contains(nested.err, told + root + "/sub/.git and")) << "OPEN\n" << nested.Describe();
  // A rebase that waits already, of which only the strategy is changed.
  const std::string other = make("rebase");
  on_host(other, "echo x > f; git commit -qam x; git rebase main");
  ASSERT_TRUE(Exists(other + "/.git/rebase-merge/git-rebase-todo")) << "NO-CONTROL";
  const RunResult changed = InProject(other, "echo ../../evil > .git/rebase-merge/strategy");
  EXPECT_TRUE(Contains(changed.err, told + other + "/.git and")) << "OPEN\n" << changed.Describe();
}

// A person is told to look at what was set aside, and a shell that shows the state of git asks it in every directory.
TEST_F(ProjectEscape, WhatWasSetAsideIsNoRepository) {
  if (!Exists("/usr/bin/git")) {
    GTEST_SKIP() << "git is not installed";
  }
  const std::string marker = dir_ / "it-ran";
  const std::string config =
      "printf '[core]\\nrepositoryformatversion = 0\\nworktree = /dev\\nfsmonitor = \"echo evil "
      "> " +
      marker + ";false\"\\n' > ";
  const auto repository = [&](const std::string& path) {
    return "mkdir -p " + path + "/objects " + path + "/refs; echo ref: refs/heads/x > " + path +
           "/HEAD; " + config + path + "/config; ";
  };
  const struct {
    std::string name;
    std::string script;
  } kPlanted[] = {
      {"Itself", repository("a/.git")},
      {"Below", repository("a/.git/modules/b")},
      {"InSettings", repository("a/.vscode/x/y")},
      {"InSettingsInSettings", repository("a/.idea/.vscode/x")},
      {"Pointer",
       "mkdir -p a/.vscode/x; echo gitdir: ../y > a/.vscode/x/.git; " + repository("a/.vscode/y")},
      {"Closed", repository("a/.git") + "chmod 0555 a/.git; "},
  };
  const auto look = [&](const std::string& root) {
    RunProgram({"sh", "-c",
                "find -L " + root +
                    " -type d | while read -r d; do (cd \"$d\" && "
                    "GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null git -c "
                    "safe.directory='*' status); done"});
    const bool ran = IsPlanted(marker);
    fs::remove(marker);
    return ran;
  };
  for (const auto& planted : kPlanted) {
    const std::string plain = dir_.MakeDir(planted.name + "-open");
    const RunResult control = InPlainMount(plain, planted.script);
    EXPECT_TRUE(look(plain)) << "NO-CONTROL " << planted.name << control.Describe();
    RunProgram({"/bin/chmod", "-R", "u+rwX", plain});

    const std::string root = dir_.MakeDir(planted.name);
    const RunResult first = InProject(root, planted.script);
    EXPECT_FALSE(look(root)) << "OPEN " << planted.name << first.Describe();
    // A name that a person would enter.
    const RunResult second = InProject(
        root,
        "n=0; find .coffer-planted-* -type d | while read -r d; do n=$((n+1)); ln -s $d l$n; done");
    EXPECT_TRUE(fs::is_symlink(root + "/l1")) << "NO-CONTROL: nothing was set aside";
    EXPECT_FALSE(look(root)) << "OPEN " << planted.name << second.Describe();
    RunProgram({"/bin/chmod", "-R", "u+rwX", root});
  }
}

// To a later call what lies in the set-aside directory was there before. Moved to a place of its own it is what it was.
TEST_F(ProjectEscape, WhatWasSetAsideDoesNotComeBack) {
  const std::string plant =
      "mkdir -p a/.idea/.vscode/.claude; echo evil > a/.idea/.vscode/tasks.json; "
      "echo evil > a/.idea/.vscode/.claude/settings.json; echo evil > a/.idea/.envrc; ";
  const auto planted = [](const std::string& root) {
    std::set<std::string> found;
    for (const std::string& name : Names(root)) {
      for (const char* known : {"/.vscode/tasks.json", "/.claude/settings.json", "/.envrc"}) {
        if (name.ends_with(known) && IsPlanted(root + name)) {
          found.insert(known);
        }
      }
    }
    return found.size();
  };
  const std::string plain = dir_.MakeDir("plain");
  const RunResult control = InPlainMount(plain, plant + "mv a/.idea b");
  EXPECT_EQ(planted(plain), 3U) << "NO-CONTROL: " << control.Describe();
  const std::string root = dir_.MakeDir("project");
  const RunResult first = InProject(root, plant);
  EXPECT_EQ(planted(root), 0U) << "OPEN\n" << first.Describe();
  const RunResult second = InProject(
      root, "mkdir b; mv .coffer-planted-*/* b/; mv b/*.idea c; mv b/*.vscode d; ls b c d");
  EXPECT_TRUE(Exists(root + "/c")) << "NO-CONTROL: " << second.Describe();
  EXPECT_EQ(planted(root), 0U) << "OPEN\n" << second.Describe();
}

TEST_F(ProjectEscape, WhatACrashLeftIsRemovedByTheNextCall) {
  const std::string root = MakeProject("project");
  const std::set<std::string> before = Names(root);
  {
    Background run({CofferPath(), "run", "--project", root, "--", "sh", "-c", "echo up; sleep 60"});
    ASSERT_TRUE(run.WaitForOutput("up")) << run.err();
    run.Signal(SIGKILL);
    run.Wait();
  }
  EXPECT_NE(Names(root), before) << "NO-CONTROL: there is nothing to remove";
  EXPECT_EQ(InProject(root, "true").exit, 0);
  EXPECT_EQ(Names(root), before);
}

TEST_F(ProjectEscape, AFifoInTheGitDirectoryStaysCovered) {
  const std::string root = MakeProject("project");
  ASSERT_EQ(::mkfifo((root + "/.git/fifo").c_str(), 0666), 0);
  const char* const script = "test -p .git/fifo && echo a-fifo; test -e .git/fifo && echo covered";
  EXPECT_TRUE(Contains(RunProgram({"/bin/sh", "-c", std::string("cd ") + root + "; " + script}).out,
                       "a-fifo"))
      << "NO-CONTROL";
  const RunResult result = InProject(root, script);
  EXPECT_FALSE(Contains(result.out, "a-fifo")) << result.Describe();
  EXPECT_TRUE(Contains(result.out, "covered")) << result.Describe();
}

TEST_F(ProjectEscape, AProtectedFileWithASecondNameIsRefused) {
  const std::string root = MakeProject("project");
  EXPECT_EQ(InProject(root, "true").exit, 0) << "NO-CONTROL";
  fs::create_hard_link(root + "/.git/config", root + "/innocent");
  const RunResult result = InProject(root, "echo evil >> innocent");
  EXPECT_EQ(result.exit, 120) << result.Describe();
  EXPECT_EQ(result.ErrorClass(), "policy.project.hard_link") << result.Describe();
  EXPECT_FALSE(IsPlanted(root + "/.git/config"));
}

// A linked worktree at `root`, whose repository is `repository`.
class ProjectPointer : public ProjectEscape {
 protected:
  ProjectPointer() {
    repository_ = dir_ / "repository";
    MakeGit(repository_ + "/.git");
    Put(repository_ + "/secret", token_);
    Put(repository_ + "/.git/secret", token_);
    record_ = repository_ + "/.git/worktrees/tree";
    Put(record_ + "/HEAD", "ref: refs/heads/tree\n");
    Put(record_ + "/commondir", "../..\n");
    Put(record_ + "/gitdir", root_ + "/.git\n");
    Put(root_ + "/.git", "gitdir: " + record_ + "\n");
  }
  std::string ShowSecret() const { return "cat " + repository_ + "/.git/secret"; }
  RunResult Look() { return InProject(root_, ShowSecret() + "; echo it-ran"); }
  bool IsShown() {
    const RunResult result = Look();
    EXPECT_TRUE(Contains(result.out, "it-ran")) << result.Describe();
    return Contains(result.out, token_);
  }

  std::string token_ = NewToken();
  std::string root_ = dir_ / "tree";
  std::string repository_;
  std::string record_;
};

TEST_F(ProjectPointer, AWorktreesRepositoryIsThereAndItsCodeIsReadOnly) {
  const RunResult result =
      InProject(root_, ShowSecret() + "; echo x > " + repository_ + "/.git/index-made; echo x > " +
                           record_ + "/index; echo evil >> " + repository_ +
                           "/.git/config; echo evil > " + repository_ +
                           "/.git/hooks/x; echo evil > " + record_ + "/commondir; echo evil > " +
                           repository_ + "/.git/commondir; cat " + repository_ + "/secret");
  EXPECT_TRUE(Exists(repository_ + "/.git/index-made")) << "NO-CONTROL: " << result.Describe();
  EXPECT_TRUE(Exists(record_ + "/index")) << result.Describe();
  for (const std::string& file : {repository_ + "/.git/config", repository_ + "/.git/hooks/x",
                                  record_ + "/commondir", repository_ + "/.git/commondir"}) {
    EXPECT_FALSE(IsPlanted(file)) << file << result.Describe();
  }
  // Its working files are not shown, and the receipt says what is.
  EXPECT_EQ(Lines(result.out).size(), 1U) << result.Describe();
  EXPECT_TRUE(Contains(result.receipt["files"]["bound"].dump(), repository_ + "/.git"))
      << result.Describe();
}

TEST_F(ProjectPointer, HooksInAWorktreeAreReadOnly) {
  Put(root_ + "/hooks/pre-commit", "true\n");
  const char* const script = "echo evil > hooks/pre-commit";
  InProject(root_, script);
  EXPECT_TRUE(IsPlanted(root_ + "/hooks/pre-commit")) << "NO-CONTROL";
  Put(root_ + "/hooks/pre-commit", "true\n");
  Put(repository_ + "/.git/config", "[core]\n\thooksPath = hooks\n");
  const RunResult result = InProject(root_, script);
  ExpectRan(result);
  EXPECT_FALSE(IsPlanted(root_ + "/hooks/pre-commit")) << result.Describe();
}

TEST_F(ProjectPointer, OtherRecordsStayAsTheyAre) {
  const std::string other = repository_ + "/.git/worktrees/other";
  Put(other + "/HEAD", "ref: refs/heads/other\n");
  Put(other + "/commondir", "../..\n");
  const RunResult result = InProject(root_, "echo evil > " + other + "/commondir; echo evil > " +
                                                other + "/HEAD; echo evil > " + record_ + "/ours");
  EXPECT_TRUE(IsPlanted(record_ + "/ours")) << "NO-CONTROL: " << result.Describe();
  EXPECT_FALSE(IsPlanted(other + "/commondir")) << result.Describe();
  EXPECT_FALSE(IsPlanted(other + "/HEAD")) << result.Describe();
}

TEST_F(ProjectPointer, TheReceiptLiesNotInItsRepository) {
  RunOptions options;
  options.receipt = repository_ + "/.git/receipt.json";
  const RunResult result = RunCoffer({"--project", root_}, {"true"}, options);
  EXPECT_EQ(result.exit, 120) << result.Describe();
  EXPECT_TRUE(Contains(result.err, "policy.receipt")) << result.Describe();
  options.receipt = dir_ / "receipt.json";
  EXPECT_EQ(RunCoffer({"--project", root_}, {"true"}, options).exit, 0) << "NO-CONTROL";
}

// What the user's own configuration makes git run in every repository.
TEST_F(ProjectEscape, HooksOfTheUsersOwnConfigurationAreReadOnly) {
  RunOptions options;
  fs::create_directories(dir_ / "home");
  options.environment = {{"HOME=" + (dir_ / "home"), "PATH=/usr/bin:/bin"}};
  const std::string root = MakeProject("project");
  const auto planted = [&] {
    Put(root + "/checks/pre-commit", "true\n");
    RunCoffer({"--project", root}, {"sh", "-c", "echo evil > checks/pre-commit"}, options);
    return IsPlanted(root + "/checks/pre-commit");
  };
  EXPECT_TRUE(planted()) << "NO-CONTROL";
  Put(dir_ / "home/.gitconfig", "[core]\n\thooksPath = checks\n");
  EXPECT_FALSE(planted());
}

// The configuration lies where nothing of it is shown inside. Git on the host reads it all the same, and finds its programs
// in the project.
TEST_F(ProjectEscape, ProgramsOfARepositoryThatIsNotShownAreReadOnly) {
  RunOptions options;
  const std::string home = dir_ / "home";
  fs::create_directories(home);
  const auto planted = [&](const std::string& root) {
    bool any = false;
    Put(root + "/checks/pre-commit", "true\n");
    Put(root + "/tools/monitor.sh", "true\n");
    const RunResult result = RunCoffer(
        {"--project", root},
        {"sh", "-c", "echo evil > checks/pre-commit; echo evil > tools/monitor.sh"}, options);
    ExpectRan(result);
    for (const char* name : {"/checks/pre-commit", "/tools/monitor.sh"}) {
      any = any || IsPlanted(root + name);
    }
    return any;
  };
  options.environment = {{"HOME=" + home, "PATH=/usr/bin:/bin"}};
  const auto settings = [](const std::string& to_project) {
    return "[core]\n\thooksPath = " + to_project + "checks\n\tfsmonitor = \"" + to_project +
           "tools/monitor.sh -x\"\n";
  };
  // A repository around the project.
  const std::string part = dir_ / "whole/part";
  fs::create_directories(part);
  EXPECT_TRUE(planted(part)) << "NO-CONTROL";
  MakeGit(dir_ / "whole/.git");
  EXPECT_TRUE(planted(part)) << "NO-CONTROL";
  Put(dir_ / "whole/.git/config", settings("part/"));
  EXPECT_FALSE(planted(part));
  // One that a `.git` file or link leads to, and that does not point back.
  MakeGit(dir_ / "elsewhere.git");
  for (const bool link : {false, true}) {
    const std::string root = dir_ / (link ? "linked" : "pointed");
    fs::create_directories(root);
    if (link) {
      fs::create_symlink("../elsewhere.git", root + "/.git");
    } else {
      Put(root + "/.git", "gitdir: ../elsewhere.git\n");
    }
    Put(dir_ / "elsewhere.git/config", "[core]\n\tbare = false\n");
    EXPECT_TRUE(planted(root)) << "NO-CONTROL";
    Put(dir_ / "elsewhere.git/config", settings(""));
    EXPECT_FALSE(planted(root)) << (link ? "a link" : "a file");
  }
  // The user's own, by the name that a variable gives it.
  const std::string own = dir_ / "own";
  Put(own + "/gitconfig", settings(""));
  EXPECT_TRUE(planted(own)) << "NO-CONTROL";
  options.environment->push_back("GIT_CONFIG_GLOBAL=" + own + "/gitconfig");
  EXPECT_FALSE(planted(own));
  ExpectRan(RunCoffer({"--project", own}, {"sh", "-c", "echo evil > gitconfig"}, options));
  EXPECT_FALSE(IsPlanted(own + "/gitconfig"));
  // By the environment alone, which comes before every file.
  const std::string named = dir_ / "named";
  fs::create_directories(named);
  options.environment->pop_back();
  EXPECT_TRUE(planted(named)) << "NO-CONTROL";
  const Strings variables = {"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.hooksPath",
                             "GIT_CONFIG_VALUE_0=checks", "GIT_EXTERNAL_DIFF=tools/monitor.sh"};
  options.environment->insert(options.environment->end(), variables.begin(), variables.end());
  EXPECT_FALSE(planted(named));
}

// The file is not there when the call begins, as in a fresh checkout, so it cannot be read-only.
TEST_F(ProjectEscape, ProgramsOfGitThatAreNotThereYetAreSetAside) {
  struct Case {
    const char* setting;
    const char* file;
  };
  int number = 0;
  for (const Case& program : {
           Case{"[core]\n\tfsmonitor = ./tools/mon\n", "tools/mon"},
           Case{"[core]\n\tfsmonitor = \"'ROOT/my tools/mon' -x\"\n", "my tools/mon"},
           Case{"[core]\n\tsshCommand = tools/ssh -v\n", "tools/ssh"},
           Case{"[diff]\n\texternal = tools/diff.sh\n", "tools/diff.sh"},
           Case{"[filter \"n\"]\n\tclean = \"\\\"ROOT/.venv/bin/python\\\" -m nbstripout\"\n",
                ".venv/bin/python"},
           Case{"[merge \"m\"]\n\tdriver = python3 merge.py %O %A\n", "merge.py"},
           Case{"[alias]\n\tx = !sh scripts/x.sh\n", "scripts/x.sh"},
       }) {
    SCOPED_TRACE(program.setting);
    const std::string root = dir_ / ("project" + std::to_string(++number));
    MakeGit(root + "/.git");
    const std::string file = root + "/" + program.file;
    const std::string script = "mkdir -p \"$(dirname '" + file + "')\"; echo evil > '" + file +
                               "'; echo kept > '" + file + ".txt'";
    InProject(root, script);
    EXPECT_TRUE(IsPlanted(file)) << "NO-CONTROL: git names nothing yet";
    fs::remove(file);
    std::string setting = program.setting;
    if (const size_t at = setting.find("ROOT"); at != std::string::npos) {
      setting.replace(at, 4, root);
    }
    Put(root + "/.git/config", setting);
    const RunResult result = InProject(root, script);
    EXPECT_EQ(result.exit, 0) << result.Describe();
    EXPECT_FALSE(Exists(file)) << result.Describe();
    EXPECT_TRUE(Exists(file + ".txt")) << "nothing else goes: " << result.Describe();
    EXPECT_EQ(result.receipt["files"]["planted"], Json::array({program.file})) << result.Describe();
    EXPECT_TRUE(Contains(result.err, "a git configuration names it")) << result.Describe();
    // By a link, as a virtual environment has its Python.
    InProject(root, "ln -s /bin/true '" + file + "'");
    EXPECT_FALSE(fs::is_symlink(file));
    const RunResult kept = InProject(root, script, {"--keep-planted"});
    EXPECT_TRUE(IsPlanted(file)) << "NO-CONTROL: " << kept.Describe();
    EXPECT_EQ(kept.receipt["files"]["planted"], Json::array({program.file})) << kept.Describe();
    // Now it is there, and so it is read-only.
    Put(file, "true\n");
    InProject(root, script);
    EXPECT_TRUE(Exists(file));
    EXPECT_FALSE(IsPlanted(file));
  }
}

// An activated environment of the project stands first on PATH: `git log` would start its pager from there.
TEST_F(ProjectEscape, ProgramsThatGitFindsOnPathAreSetAside) {
  const std::string root = dir_ / "project";
  MakeGit(root + "/.git");
  Put(root + "/.git/config",
      "[filter \"n\"]\n\tclean = stripper -q\n[alias]\n\tx = !helper x\n[init]\n\tdefaultBranch = "
      "main\n[hook \"h\"]\n\tcommand = A=1 checker\n[credential]\n\thelper = keeper\n");
  fs::create_directories(root + "/.venv/bin");
  RunOptions options;
  const auto on_path = [&](const std::string& directories) {
    options.environment = {{"HOME=" + dir_.path(), "PATH=" + directories + ":/usr/bin:/bin"}};
  };
  const auto plant = [&](const std::string& name, const std::string& where = ".venv/bin",
                         const Strings& more = {}) {
    Strings flags = {"--project", root};
    flags.insert(flags.end(), more.begin(), more.end());
    const std::string file = where + "/" + name;
    RunResult result = RunCoffer(
        flags, {"sh", "-c", "mkdir -p " + where + "; echo evil > " + file + "; chmod +x " + file},
        options);
    ExpectRan(result);
    return result;
  };
  const Strings names = {"pager",  "less",    "ssh",
                         "git",    "sh",      "stripper",
                         "helper", "checker", "git-credential-keeper"};
  on_path("/nowhere");
  for (const std::string& name : names) {
    const RunResult control = plant(name);
    EXPECT_TRUE(IsPlanted(root + "/.venv/bin/" + name)) << "NO-CONTROL" << control.Describe();
    fs::remove(root + "/.venv/bin/" + name);
  }
  on_path(root + "/.venv/bin:node_modules/.bin");
  for (const std::string& name : names) {
    const RunResult result = plant(name);
    EXPECT_FALSE(Exists(root + "/.venv/bin/" + name)) << "OPEN " << name << result.Describe();
    EXPECT_EQ(result.receipt["files"]["planted"], Json::array({".venv/bin/" + name}));
    EXPECT_TRUE(Contains(result.err, "on your PATH")) << result.Describe();
  }
  // One that is relative counts from the top, and a directory that is a link is one of PATH too.
  plant("less", "node_modules/.bin");
  EXPECT_FALSE(Exists(root + "/node_modules/.bin/less")) << "OPEN";
  fs::create_directory_symlink(root + "/tools", dir_ / "tools");
  fs::create_directories(root + "/tools");
  on_path(dir_ / "tools");
  plant("pager", "tools");
  EXPECT_FALSE(Exists(root + "/tools/pager")) << "OPEN";
  // Honest programs stay, also the one that is called like a branch.
  on_path(root + "/.venv/bin");
  for (const char* const name : {"main", "pytest", "black"}) {
    const RunResult honest = plant(name);
    EXPECT_TRUE(Exists(root + "/.venv/bin/" + name)) << honest.Describe();
    EXPECT_EQ(honest.receipt["files"]["planted"], Json::array()) << honest.Describe();
  }
  // A link may lead to what another user makes later.
  const RunResult later = RunCoffer(
      {"--project", root}, {"sh", "-c", "ln -s /tmp/nothing-yet .venv/bin/pager"}, options);
  EXPECT_FALSE(fs::is_symlink(root + "/.venv/bin/pager")) << "OPEN" << later.Describe();
  // A link to a directory is no program.
  const RunResult linked =
      RunCoffer({"--project", root}, {"sh", "-c", "mv .venv v; ln -s v .venv"}, options);
  EXPECT_TRUE(fs::is_symlink(root + "/.venv")) << linked.Describe();
  fs::remove(root + "/.venv");
  fs::rename(root + "/v", root + "/.venv");
  plant("less", ".venv/bin", {"--keep-planted"});
  EXPECT_TRUE(IsPlanted(root + "/.venv/bin/less")) << "NO-CONTROL";
  // Now it is there, and so it is read-only.
  Put(root + "/.venv/bin/less", "true\n");
  RunCoffer({"--project", root}, {"sh", "-c", "echo evil > .venv/bin/less"}, options);
  EXPECT_FALSE(IsPlanted(root + "/.venv/bin/less")) << "OPEN";
}

// Other programs that come before those of the system are told: installing them is what an environment is for.
TEST_F(ProjectEscape, ProgramsThatComeFirstOnPathAreTold) {
  const std::string root = MakeProject("project");
  fs::create_directories(root + "/.venv/bin");
  const auto planted = [&](const std::string& path, const std::string& name) {
    RunOptions options;
    options.environment = {{"HOME=" + dir_.path(), "PATH=" + path + "/usr/bin:/bin"}};
    return RunCoffer({"--project", root},
                     {"sh", "-c",
                      "echo evil > .venv/bin/" + name + "; chmod +x .venv/bin/" + name +
                          "; echo x > .venv/bin/x.txt"},
                     options);
  };
  const std::string told = "/.venv/bin/dd is new and in a directory of your PATH";
  const RunResult control = planted("", "dd");
  EXPECT_FALSE(Contains(control.err, told)) << "NO-CONTROL" << control.Describe();
  fs::remove(root + "/.venv/bin/dd");
  const RunResult result = planted(root + "/.venv/bin:", "dd");
  EXPECT_TRUE(Contains(result.err, told)) << result.Describe();
  const RunResult again = planted(root + "/.venv/bin:", "dd");
  EXPECT_FALSE(Contains(again.err, "of your PATH")) << again.Describe();
  RunOptions loads;
  loads.environment = {
      {"HOME=" + dir_.path(), "PATH=/usr/bin:/bin", "LD_LIBRARY_PATH=/none:" + root + "/lib"}};
  const RunResult libraries = RunCoffer({"--project", root}, {"true"}, loads);
  EXPECT_TRUE(Contains(libraries.err, "LD_LIBRARY_PATH names " + root + "/lib"))
      << libraries.Describe();
  EXPECT_FALSE(Contains(again.err, "LD_LIBRARY_PATH")) << again.Describe();
  const RunResult own = planted(root + "/.venv/bin:", "none-of-the-system");
  EXPECT_FALSE(Contains(own.err, "of your PATH")) << own.Describe();
}

TEST_F(ProjectEscape, ProgramsOfGitWithSpacesInTheirNamesAreReadOnly) {
  const std::string root = dir_ / "project";
  MakeGit(root + "/.git");
  const auto planted = [&] {
    Put(root + "/my tools/mon", "true\n");
    InProject(root, "echo evil > 'my tools/mon'");
    return IsPlanted(root + "/my tools/mon");
  };
  EXPECT_TRUE(planted()) << "NO-CONTROL";
  for (const std::string& value :
       {"'" + root + "/my tools/mon' -x", std::string(R"(\"my tools/mon\" -x)"),
        std::string(R"(my\\ tools/mon -x)"), std::string(R"(sh -c '\"my tools/mon\" %f')")}) {
    Put(root + "/.git/config", "[core]\n\tfsmonitor = \"" + value + "\"\n");
    EXPECT_FALSE(planted()) << value;
  }
}

// While such a file is there, git on the host does not write.
TEST_F(ProjectEscape, LocksThatAreLeftInGitDirectoriesAreTold) {
  const std::string root = MakeProject("project");
  const RunResult control = InProject(root, "echo x > .git/file; echo x > yarn.lock");
  EXPECT_FALSE(Contains(control.err, "left in a git directory"))
      << "NO-CONTROL: " << control.Describe();
  const char* const script =
      "echo x > .git/config.lock; mkdir .git/index.lock; mkdir -p .git/refs/heads; "
      "echo x > .git/refs/heads/main.lock";
  const RunResult result = InProject(root, script);
  for (const char* const lock : {".git/config.lock", ".git/index.lock", "heads/main.lock"}) {
    EXPECT_TRUE(Contains(result.err, std::string(lock) + " was left in a git directory"))
        << result.Describe();
  }
  EXPECT_TRUE(Exists(root + "/.git/config.lock")) << "a git of the host may hold it";
  const RunResult next = InProject(root, "true");
  EXPECT_FALSE(Contains(next.err, "left in a git directory")) << "not of this call";
}

// A cache lies outside of the project, and a link leads there.
TEST_F(ProjectEscape, NoRepositoryIsLeftInACache) {
  const std::string root = MakeProject("project");
  fs::create_directories(dir_ / "home");
  RunOptions options;
  options.environment = {
      {"HOME=" + (dir_ / "home"), "XDG_CACHE_HOME=" + (dir_ / "cache"), "PATH=/usr/bin:/bin"}};
  const std::string pip = (IsRoot() ? "/var/cache" : dir_ / "cache") + "/coffer/projects/" +
                          HashOf(root).substr(7, 24) + "/pip";
  const std::string script =
      "cd $PIP_CACHE_DIR; echo kept > wheel; mkdir -p a/objects a/refs b; echo evil > a/config; "
      "echo 'ref: refs/heads/evil' > a/HEAD; echo 'gitdir: /evil' > b/.git";
  const auto run = [&](const Strings& more) {
    Strings flags = {"--project", root, "--cache", "pip"};
    flags.insert(flags.end(), more.begin(), more.end());
    return RunCoffer(flags, {"sh", "-c", script}, options);
  };
  const RunResult kept = run({"--keep-planted"});
  EXPECT_TRUE(IsPlanted(pip + "/a/HEAD") && IsPlanted(pip + "/b/.git"))
      << "NO-CONTROL: " << kept.Describe();
  const RunResult result = run({});
  EXPECT_EQ(result.exit, 0) << result.Describe();
  EXPECT_FALSE(IsPlanted(pip + "/a/HEAD")) << result.Describe();
  EXPECT_FALSE(IsPlanted(pip + "/b/.git")) << result.Describe();
  EXPECT_TRUE(Exists(pip + "/wheel")) << result.Describe();
  EXPECT_EQ(result.receipt["files"]["planted"], Json::array({pip + "/a/HEAD", pip + "/b/.git"}))
      << result.Describe();
  if (IsRoot()) {
    RunProgram({CofferPath(), "cache", "clear", "--project", root});
  }
}

// Package managers link what they install to their stores. Such a file is one of the project and of others at once.
TEST_F(ProjectEscape, FilesWithNamesOutsideAreTold) {
  const std::string root = MakeProject("project");
  Put(root + "/node_modules/x/index.js", "fine\n");
  fs::create_hard_link(root + "/node_modules/x/index.js", root + "/node_modules/x/same.js");
  const char* const script = "echo evil > node_modules/x/index.js";
  const RunResult control = InProject(root, script);
  EXPECT_FALSE(Contains(control.err, "hard links")) << "NO-CONTROL: " << control.Describe();
  EXPECT_FALSE(Contains(control.receipt["blast_radius"].get<std::string>(), "hard links"));
  fs::create_directories(dir_ / "store");
  fs::create_hard_link(root + "/node_modules/x/index.js", dir_ / "store/1");
  const RunResult result = InProject(root, script);
  EXPECT_TRUE(IsPlanted(dir_ / "store/1")) << "NO-CONTROL: nothing changed outside";
  EXPECT_TRUE(Contains(result.err, "1 files that the command could change")) << result.Describe();
  EXPECT_TRUE(Contains(result.receipt["blast_radius"].get<std::string>(), "hard links"))
      << result.receipt["blast_radius"];
}

// A repository of dot files, linked from the home directory: the shell and git of the host read them by themselves.
TEST_F(ProjectEscape, SettingsLinkedFromTheHomeAreReadOnly) {
  const std::string home = dir_ / "home";
  const std::string root = MakeProject("dotfiles");
  RunOptions options;
  options.environment = {{"HOME=" + home, "PATH=/usr/bin:/bin"}};
  fs::create_directories(home + "/.config/autostart");
  fs::create_directory_symlink(root, dir_ / "alias");
  const auto planted = [&](const std::string& name) {
    Put(root + "/" + name, "true\n");
    RunCoffer({"--project", root},
              {"sh", "-c", "rm -f " + name + "; echo evil > " + name + "; echo evil > new"},
              options);
    EXPECT_TRUE(IsPlanted(root + "/new")) << "NO-CONTROL: the project is not writable";
    fs::remove(root + "/new");
    return IsPlanted(root + "/" + name);
  };
  const Strings names = {"bashrc", "nvim/init.lua", "start/x.desktop"};
  for (const std::string& name : names) {
    EXPECT_TRUE(planted(name)) << "NO-CONTROL " << name;
  }
  // By a relative name, a directory as a whole, and over another link.
  fs::create_symlink("../dotfiles/bashrc", home + "/.bashrc");
  fs::create_directory_symlink(root + "/nvim", home + "/.config/nvim");
  fs::create_symlink(dir_ / "alias/start/x.desktop", home + "/.config/autostart/x.desktop");
  fs::create_directory_symlink(root, home + "/.dotfiles");
  for (const std::string& name : names) {
    EXPECT_FALSE(planted(name)) << name;
  }
}

TEST_F(ProjectPointer, APointerToAnotherRepositoryIsNotFollowed) {
  EXPECT_TRUE(IsShown()) << "NO-CONTROL";
  Put(root_ + "/.git", "gitdir: " + repository_ + "/.git\n");
  EXPECT_FALSE(IsShown());
}

TEST_F(ProjectPointer, ARecordThatNamesAnotherProjectIsNotFollowed) {
  EXPECT_TRUE(IsShown()) << "NO-CONTROL";
  Put(record_ + "/gitdir", dir_ / "elsewhere/.git\n");
  EXPECT_FALSE(IsShown());
}

TEST_F(ProjectPointer, TheTextOfARecordDoesNotChooseTheRepository) {
  EXPECT_TRUE(IsShown()) << "NO-CONTROL";
  // A payload of another project made a record there that says this repository is the common one.
  const std::string other = dir_ / "other";
  MakeGit(other + "/.git");
  const std::string made = other + "/.git/worktrees/tree";
  Put(made + "/HEAD", "ref: refs/heads/tree\n");
  Put(made + "/commondir", repository_ + "/.git\n");
  Put(made + "/gitdir", root_ + "/.git\n");
  Put(root_ + "/.git", "gitdir: " + made + "\n");
  EXPECT_FALSE(IsShown());
}

TEST_F(ProjectPointer, APointerThroughALinkIsNotFollowed) {
  EXPECT_TRUE(IsShown()) << "NO-CONTROL";
  fs::create_symlink(repository_, dir_ / "alias");
  Put(root_ + "/.git", "gitdir: " + (dir_ / "alias/.git/worktrees/tree") + "\n");
  EXPECT_FALSE(IsShown());
}

TEST_F(ProjectPointer, ALinkInPlaceOfGitIsNotFollowed) {
  EXPECT_TRUE(IsShown()) << "NO-CONTROL";
  fs::remove(root_ + "/.git");
  fs::create_symlink(repository_ + "/.git", root_ + "/.git");
  EXPECT_FALSE(IsShown());
}

TEST_F(ProjectPointer, ASubmodulePointsBackByItsConfiguration) {
  const std::string git = repository_ + "/.git/modules/lib";
  MakeGit(git);
  Put(git + "/secret", token_);
  Put(root_ + "/.git", "gitdir: " + git + "\n");
  const auto shown = [&] {
    return Contains(InProject(root_, "cat " + git + "/secret").out, token_);
  };
  EXPECT_FALSE(shown()) << "it names no worktree";
  Put(git + "/config", "[core]\n\tworktree = " + root_ + "\n");
  EXPECT_TRUE(shown()) << "NO-CONTROL";
  Put(git + "/config", "[core]\n\tworktree = " + root_ + "x\n");
  EXPECT_FALSE(shown()) << "it names another worktree";
}

class ProjectPaths : public ProjectEscape {
 protected:
  ProjectPaths() {
    Put(dir_ / "data/file", token_);
    Put(dir_ / ".hidden/file", token_);
    fs::create_directories(dir_ / "work");
    here_.cwd = dir_ / "work";
  }
  RunResult Cat(const Strings& flags) {
    Strings all = {"--runtime", "host-usr"};
    all.insert(all.end(), flags.begin(), flags.end());
    return RunCoffer(all, {"sh", "-c", "cat /x/file; echo evil > /x/new"}, here_);
  }
  std::string token_ = NewToken();
  RunOptions here_;
};

TEST_F(ProjectPaths, TheCallersOwnWordsAreResolved) {
  fs::create_symlink("../data", dir_ / "work/link");
  EXPECT_TRUE(Contains(Cat({"--ro", "../data:/x"}).out, token_));
  EXPECT_TRUE(Contains(Cat({"--ro", "../work/../data:/x"}).out, token_));
  const RunResult link = Cat({"--ro", "link:/x"});
  EXPECT_TRUE(Contains(link.out, token_)) << "NO-CONTROL: " << link.Describe();
  EXPECT_TRUE(Contains(link.err, dir_ / "data")) << "which link was followed is said";
}

TEST_F(ProjectPaths, ALinkIntoAHiddenDirectoryIsNotFollowed) {
  EXPECT_TRUE(Contains(Cat({"--ro", "../.hidden:/x"}).out, token_)) << "NO-CONTROL";
  fs::create_symlink(dir_ / ".hidden", dir_ / "work/data");
  const RunResult result = Cat({"--ro", "data:/x"});
  EXPECT_EQ(result.exit, 120) << result.Describe();
  EXPECT_FALSE(Contains(result.out, token_)) << result.Describe();
}

TEST_F(ProjectPaths, AWritableLinkThatLeadsOutIsNotFollowed) {
  EXPECT_EQ(Cat({"--rw", "../data:/x"}).exit, 0) << "NO-CONTROL";
  EXPECT_TRUE(IsPlanted(dir_ / "data/new"));
  fs::remove(dir_ / "data/new");
  fs::create_symlink(dir_ / "data", dir_ / "work/out");
  for (const Strings& flags : {Strings{"--rw", "out:/x"}, Strings{"--out", "out"}}) {
    const RunResult result = Cat(flags);
    EXPECT_EQ(result.exit, 120) << result.Describe();
    EXPECT_FALSE(Exists(dir_ / "data/new")) << result.Describe();
  }
}

TEST_F(ProjectPaths, AReceiptDoesNotFollowALinkThatLeadsOut) {
  RunOptions here = {.cwd = dir_ / "work"};
  const auto write = [&](const std::string& receipt) {
    here.receipt = receipt;
    return RunCoffer({}, {"/bin/true"}, here);
  };
  EXPECT_EQ(write("../data/receipt.json").exit, 0) << "NO-CONTROL";
  EXPECT_TRUE(Contains(ReadFile(dir_ / "data/receipt.json").value_or(""), "call_id"));
  Put(dir_ / "data/receipt.json", token_);
  fs::create_symlink(dir_ / "data", dir_ / "work/out");
  fs::create_symlink("deeper/inner", dir_ / "work/inside");
  fs::create_directories(dir_ / "work/deeper/inner");
  fs::create_symlink("../../../data", dir_ / "work/deeper/inner/up");
  for (const char* path : {"out/receipt.json", "inside/up/receipt.json"}) {
    const RunResult result = write(path);
    EXPECT_EQ(result.exit, 120) << path << "\n" << result.Describe();
    EXPECT_EQ(ReadFile(dir_ / "data/receipt.json"), token_) << path << "\n" << result.Describe();
  }
  EXPECT_EQ(write("inside/receipt.json").exit, 0) << "a link that stays in its directory";
  EXPECT_TRUE(Exists(dir_ / "work/deeper/inner/receipt.json"));
}

TEST_F(ProjectPaths, ALinkInAMountOfTheSameCallIsNotFollowed) {
  fs::create_symlink("../data", dir_ / "work/link");
  EXPECT_TRUE(Contains(Cat({"--ro", "link:/x"}).out, token_)) << "NO-CONTROL";
  const RunResult result = Cat({"--rw", ".:/work", "--ro", "link:/x"});
  EXPECT_EQ(result.exit, 120) << result.Describe();
  EXPECT_FALSE(Contains(result.out, token_)) << result.Describe();
}

TEST_F(ProjectEscape, TheFileOfAProjectOnlyNarrows) {
  const std::string root = MakeProject("project");
  const auto memory = [&] { return InProject(root, "true").receipt["limits"]["memory"]["cap"]; };
  Put(root + "/.coffer.toml", "memory = \"1GiB\"\nread_only = [\"shared\"]\n");
  EXPECT_EQ(memory(), 1ULL << 30) << "NO-CONTROL: it is not read";
  Put(root + "/.coffer.toml", "memory = \"64GiB\"\n");
  EXPECT_EQ(memory(), 2ULL << 30);
  for (const char* text : {"ro = [\"/etc\"]\n", "env = { A = \"b\" }\n", "runtime = \"host-usr\"\n",
                           "read_only = [\"../x\"]\n"}) {
    Put(root + "/.coffer.toml", text);
    EXPECT_EQ(InProject(root, "true").exit, 120) << text;
  }
}

TEST_F(ProjectEscape, CachesAreAProjectsOwn) {
  const std::string first = MakeProject("first");
  const std::string second = MakeProject("second");
  const auto run = [&](const std::string& root, const std::string& script) {
    RunOptions options;
    options.environment = {
        {"HOME=" + (dir_ / "home"), "XDG_CACHE_HOME=" + (dir_ / "cache"), "PATH=/usr/bin:/bin"}};
    return RunCoffer({"--project", root, "--cache", "pip"}, {"sh", "-c", script}, options);
  };
  fs::create_directories(dir_ / "home");
  const std::string mark = NewToken();
  EXPECT_EQ(run(first, "echo " + mark + " > $PIP_CACHE_DIR/mark").exit, 0);
  EXPECT_TRUE(Contains(run(first, "cat $PIP_CACHE_DIR/mark").out, mark)) << "NO-CONTROL";
  EXPECT_FALSE(Contains(run(second, "cat $PIP_CACHE_DIR/mark").out, mark));
  // A call may close its cache; the next one has it open again.
  const std::string pip = (IsRoot() ? "/var/cache" : dir_ / "cache") + "/coffer/projects/" +
                          HashOf(first).substr(7, 24) + "/pip";
  run(first, "chmod 000 $PIP_CACHE_DIR");
  EXPECT_EQ(fs::status(pip).permissions(), fs::perms::none) << "NO-CONTROL";
  const RunResult opened = run(first, "echo " + mark + " > $PIP_CACHE_DIR/mark");
  EXPECT_EQ(opened.exit, 0) << opened.Describe();
  // Another directory with the path of the first is another project.
  fs::rename(first, dir_ / "moved");
  MakeProject("first");
  EXPECT_FALSE(Contains(run(first, "cat $PIP_CACHE_DIR/mark").out, mark));
  if (IsRoot()) {
    // As root they lie in /var/cache/coffer.
    RunProgram({CofferPath(), "cache", "clear", "--project", first});
    RunProgram({CofferPath(), "cache", "clear", "--project", second});
  }
}

}  // namespace
}  // namespace coffer::test
