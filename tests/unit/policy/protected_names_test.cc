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
  for (const char* name :
       {"lefthook.yml", ".lefthook.yaml", "lefthook.toml", "lefthook.jsonc", "lefthook-local.yml",
        ".lefthook-local.json", "Lefthook.YML", "mise.toml", ".mise.toml", "mise.local.toml",
        "mise.test.local.toml", "x.code-workspace", ".code-workspace", "X.Code-Workspace"}) {
    EXPECT_NE(FindProtectedName(name), nullptr) << name;
  }
  for (const char* name : {"lefthook", "lefthook.md", "lefthooks.yml", "lefthook-local", "mise",
                           "mise.lock", "miser.toml", "code-workspace", "x.code-workspaces"}) {
    EXPECT_EQ(FindProtectedName(name), nullptr) << name;
  }
}

TEST(ProtectedNames, SomeCountInOneDirectoryOnly) {
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
