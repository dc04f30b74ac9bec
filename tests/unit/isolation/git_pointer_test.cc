// SPDX-License-Identifier: Apache-2.0
#include "isolation/git_pointer.h"

#include <gtest/gtest.h>

namespace coffer::isolation {
namespace {

TEST(GitConfigValue, ReadsWhatGitReads) {
  const char* const text =
      "; a comment\n[core]\n\tbare = false\n\tworktree = ../../../lib\n[remote \"core\"]\n"
      "\tworktree = /elsewhere\n";
  EXPECT_EQ(GitConfigValue(text, "core", "worktree"), "../../../lib");
  EXPECT_EQ(GitConfigValue(text, "core", "hookspath"), "");
  EXPECT_EQ(GitConfigValue("[CORE]\n\tHooksPath = \"my hooks\"\n", "core", "hookspath"),
            "my hooks");
  EXPECT_EQ(GitConfigValue("[core] hooksPath = a\n", "core", "hookspath"), "a");
  EXPECT_EQ(GitConfigValue("[core]\nhookspath=a\nhookspath=b\n", "core", "hookspath"), "b");
}

TEST(GitConfigValue, HostileTextsAreNothing) {
  for (const char* text :
       {"", "[", "[core", "[core]", "=", "[core]\n=x", "worktree = x", "]\n[core\nworktree=x"}) {
    EXPECT_EQ(GitConfigValue(text, "core", "worktree"), "") << text;
  }
}

}  // namespace
}  // namespace coffer::isolation
