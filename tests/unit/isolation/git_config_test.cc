// SPDX-License-Identifier: Apache-2.0
#include "isolation/git_config.h"

#include <gtest/gtest.h>

#include <string>

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

// Each of these was read otherwise by a reader that goes line by line.
TEST(GitConfigValue, CommentsEscapesAndLongLines) {
  const auto hooks = [](const char* value) {
    return GitConfigValue(std::string("[core]\n\thooksPath = ") + value, "core", "hookspath");
  };
  EXPECT_EQ(hooks("a ; ours\n"), "a");
  EXPECT_EQ(hooks("a # ours\n"), "a");
  EXPECT_EQ(hooks("\"a;b\"\n"), "a;b");
  EXPECT_EQ(hooks("a\\\nb\n"), "ab");
  EXPECT_EQ(hooks("a\\\\b\n"), "a\\b");
  EXPECT_EQ(hooks("a\\\"b\n"), "a\"b");
  EXPECT_EQ(hooks("a\r\n"), "a");
  EXPECT_EQ(hooks("a b  \n"), "a b");
  EXPECT_EQ(hooks("a"), "a");
  EXPECT_EQ(hooks("a\\"), "a");  // `git config -l` says so too
  EXPECT_EQ(hooks("\"a\\"), "");
  using std::string_literals::operator""s;
  EXPECT_EQ(GitConfigValue("[core]\nhookspath=a\0b\n"s, "core", "hookspath"), "a");
  EXPECT_EQ(GitConfigValue("\xef\xbb\xbf[core]\nhookspath=a\n", "core", "hookspath"), "a");
}

TEST(GitConfigValue, HostileTextsAreNothing) {
  for (const char* text : {"", "[", "[core", "[core]", "=", "[core]\n=x", "worktree = x",
                           "]\n[core\nworktree=x", "[core]\nworktree = \"x\n",
                           "[core]\nworktree = x\\q\n", "[core \"x\nworktree=x", "[core \"\\"}) {
    EXPECT_EQ(GitConfigValue(text, "core", "worktree"), "") << text;
  }
}

TEST(ReadGitConfig, ListsEverySetting) {
  const std::vector<GitSetting> settings =
      ReadGitConfig("[filter \"a b\"]\n\tClean = x\n\trequired\n[diff.y] command = z\n");
  ASSERT_EQ(settings.size(), 3U);
  EXPECT_EQ(settings[0].section, "filter");
  EXPECT_TRUE(settings[0].subsection);
  EXPECT_EQ(settings[0].key, "clean");
  EXPECT_EQ(settings[1].key, "required");
  EXPECT_EQ(settings[1].value, "");
  EXPECT_EQ(settings[2].section, "diff");
  EXPECT_EQ(settings[2].value, "z");
}

}  // namespace
}  // namespace coffer::isolation
