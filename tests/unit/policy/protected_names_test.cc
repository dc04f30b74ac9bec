// SPDX-License-Identifier: Apache-2.0
#include "policy/protected_names.h"

#include <gtest/gtest.h>

namespace coffer::policy {
namespace {

TEST(ProtectedNames, AreFoundInAnyCase) {
  for (const char* name : {".git", ".Git", ".GIT", ".vscode", ".VSCode", ".envrc", ".idea",
                           ".claude", "lefthook.yml", ".coffer.toml", ".pre-commit-config.yaml"}) {
    EXPECT_NE(FindProtectedName(name), nullptr) << name;
  }
  for (const char* name :
       {"", "git", ".gitignore", ".github", "package.json", "Makefile", ".env", "lib"}) {
    EXPECT_EQ(FindProtectedName(name), nullptr) << name;
  }
}

TEST(ProtectedNames, EveryNameIsFoundAndSaysWhoRunsIt) {
  for (const ProtectedName& known : ProtectedNames()) {
    EXPECT_EQ(FindProtectedName(known.name, known.in), &known) << known.name;
    EXPECT_FALSE(known.run_by.empty()) << known.name;
  }
}

// A tool that reads one name of a family reads the others too.
TEST(ProtectedNames, FamiliesAreFoundAsAWhole) {
  for (const char* name : {"lefthook.yml",
                           ".lefthook.yaml",
                           "lefthook.toml",
                           "lefthook.jsonc",
                           "lefthook-local.yml",
                           ".lefthook-local.json",
                           "Lefthook.YML",
                           "mise.toml",
                           ".mise.toml",
                           "mise.local.toml",
                           "mise.test.local.toml",
                           "x.code-workspace",
                           ".code-workspace",
                           "X.Code-Workspace",
                           ".huskyrc",
                           ".huskyrc.json",
                           ".huskyrc.js",
                           "husky.config.js",
                           "x.sublime-project",
                           "grumphp.yml",
                           "grumphp.yml.dist",
                           "grumphp.dist.yml",
                           ".grumphp.yml"}) {
    EXPECT_NE(FindProtectedName(name), nullptr) << name;
  }
  for (const char* name :
       {"lefthook", "lefthook.md", "lefthooks.yml", "lefthook-local", "mise", "mise.lock",
        "miser.toml", "code-workspace", "x.code-workspaces", "husky.config.ts", "husky",
        "x.sublime-workspace", "grumphp", "grumphp.php"}) {
    EXPECT_EQ(FindProtectedName(name), nullptr) << name;
  }
}

TEST(ProtectedNames, SettingsInGitDirectoriesAreFound) {
  for (const char* name : {"lazygit.yml", "Lazygit.YML", "glab-cli", "sl", "arc", "crypt"}) {
    EXPECT_NE(FindNameInGitDirectory(name), nullptr) << name;
    EXPECT_EQ(FindProtectedName(name), nullptr) << name;
  }
  for (const char* name : {"", "HEAD", "config", "objects", "index", "info", "slx", "branches"}) {
    EXPECT_EQ(FindNameInGitDirectory(name), nullptr) << name;
  }
}

TEST(ProtectedNames, SomeCountInOneDirectoryOnly) {
  EXPECT_NE(FindProtectedName("flake-profile-0a.rc", ".direnv"), nullptr);
  EXPECT_EQ(FindProtectedName("flake-profile-0a.rc", "src"), nullptr);
  EXPECT_EQ(FindProtectedName("python-3.11", ".direnv"), nullptr);
  EXPECT_NE(FindProtectedName("duo", ".gitlab"), nullptr);
  EXPECT_EQ(FindProtectedName("duo", "src"), nullptr);
  EXPECT_NE(FindProtectedName("irb", ".config"), nullptr);
  EXPECT_EQ(FindProtectedName("irb", "lib"), nullptr);
  EXPECT_NE(FindProtectedName("hooks", ".github"), nullptr);
  EXPECT_NE(FindProtectedName("hooks", ".GitHub"), nullptr);
  EXPECT_EQ(FindProtectedName("hooks", "src"), nullptr);
  EXPECT_EQ(FindProtectedName("hooks"), nullptr);
  EXPECT_NE(FindProtectedName("mise", ".config"), nullptr);
  EXPECT_NE(FindProtectedName("config.toml", "mise"), nullptr);
  EXPECT_EQ(FindProtectedName("config.toml", ".cargo"), nullptr);
}

}  // namespace
}  // namespace coffer::policy
