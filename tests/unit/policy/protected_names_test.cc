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
    EXPECT_EQ(FindProtectedName(known.name), &known) << known.name;
    EXPECT_FALSE(known.run_by.empty()) << known.name;
  }
}

}  // namespace
}  // namespace coffer::policy
