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
      {"~/token and ~/.config/coffer/run.toml", hash("~/token") + " and ~/.config/coffer/run.toml"},
      {"two inputs are called \"token\"", "two inputs are called \"" + hash("token") + "\""},
      {"declare it: toolchains = [\"DIRECTORY\"]", "declare it: toolchains = [\"DIRECTORY\"]"},
      {"an empty name \"\" and a hash \"" + hash("x") + "\"",
       "an empty name \"\" and a hash \"" + hash("x") + "\""},
  };
  for (const auto& [text, kept] : table) {
    EXPECT_EQ(TakeOutPaths(text), kept);
  }
}

// However a path is made up, what a sentence names in this way is not in the record.
TEST(TakeOutPaths, WhatPathInWordsWrites) {
  for (const std::string path :
       {"/x", "/home/me/token", "/home/me/a token", "/home/ token ", "/t,t", "/a/(token)",
        "/a\" token b", "/a \" [\"token", "\"/token/"}) {
    const std::string kept =
        TakeOutPaths("a file names " + PathInWords(path) + " (library), which");
    EXPECT_TRUE(kept.starts_with("a file names ") && kept.ends_with(" (library), which")) << kept;
    EXPECT_NE(kept.find("sha256:"), std::string::npos) << kept;
    EXPECT_EQ(kept.find("token"), std::string::npos) << kept;
  }
}

// What the flags say that is no path of the host: where it would be shown, what it is called, where the call would start.
TEST(TakeOut, WordsOfARun) {
  RunRequest request;
  request.command = {"true"};
  request.envelope.inputs = {"/home/me/a/my token"};
  request.envelope.mounts.push_back({.host = "/home/me/p", .at = "/at/my token"});
  request.envelope.cwd = "/start/my token";
  request.envelope.runtimes = {"tokentoken", "python3", "host-usr"};
  request.tools = {"tool-token"};
  request.tool_dirs = {"/tools/my token"};
  request.state = "/state/my token";
  audit::Receipt receipt;
  for (const std::string named :
       {"\"my token\"", "/at/my token", "/start/my token", "/home/me/a/my token", "tokentoken",
        "tool-token", "/tools/my token", "/state/my token"}) {
    receipt.error_message += "a sentence names " + named + " and goes on, ";
  }
  receipt.error_message += "--runtime host-usr";
  RedactRefusal(WordsOf(request), receipt);
  EXPECT_EQ(receipt.error_message.find("token"), std::string::npos) << receipt.error_message;
  EXPECT_TRUE(receipt.error_message.ends_with("--runtime host-usr")) << receipt.error_message;
}

}  // namespace
}  // namespace coffer::call
