// SPDX-License-Identifier: Apache-2.0
#include "call/redact.h"

#include <gtest/gtest.h>

#include "base/hash.h"
#include "base/path_words.h"

namespace coffer::call {
namespace {

TEST(TakeOutPaths, EveryWordThatIsAPath) {
  const auto hash = [](const std::string& path) { return HashOf(path); };
  const std::pair<std::string, std::string> table[] = {
      {"", ""},
      {"nothing to see; 3 and/", "nothing to see; 3 " + hash("and/")},
      {"a link leads to /home/me/x (library), and",
       "a link leads to " + hash("/home/me/x") + " (library), and"},
      {"/a: its interpreter bin/sh is not",
       hash("/a") + ": its interpreter " + hash("bin/sh") + " is not"},
      {"names \"/home/me/my keys/x y\" (script)",
       "names \"" + hash("/home/me/my keys/x y") + "\" (script)"},
      {"an end that is open: \"/a b", "an end that is open: \"" + hash("/a b")},
      {"(/a/b)", "(" + hash("/a/b") + ")"},
      {"declare it in ~/.config/coffer/run.toml", "declare it in ~/.config/coffer/run.toml"},
      {"\"..\" in sha256:abc", "\"..\" in sha256:abc"},
  };
  for (const auto& [text, kept] : table) {
    EXPECT_EQ(TakeOutPaths(text), kept);
  }
}

// However a path is made up, what a sentence names in this way is not in the record.
TEST(TakeOutPaths, WhatPathInWordsWrites) {
  for (const std::string path :
       {"/x", "/home/me/token", "/home/me/a token", "/home/ token ", "/t,t", "/a/(token)"}) {
    const std::string kept =
        TakeOutPaths("a file names " + PathInWords(path) + " (library), which");
    EXPECT_TRUE(kept.starts_with("a file names ") && kept.ends_with(" (library), which")) << kept;
    EXPECT_NE(kept.find("sha256:"), std::string::npos) << kept;
    EXPECT_EQ(kept.find("token"), std::string::npos) << kept;
  }
}

}  // namespace
}  // namespace coffer::call
