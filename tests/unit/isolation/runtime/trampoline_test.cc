// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/trampoline.h"

#include <gtest/gtest.h>

namespace coffer::isolation {
namespace {

std::string Target(const std::string& word) {
  return TrampolineTarget("#!/bin/sh\n'''exec' " + word + " \"$0\" \"$@\"\n' '''\nimport sys\n",
                          "/env/bin");
}

TEST(Trampoline, NamesItsInterpreter) {
  EXPECT_EQ(Target("/a/b/python"), "/a/b/python");
  EXPECT_EQ(Target("'/a b/python3'"), "/a b/python3");
  EXPECT_EQ(Target("\"/a b/python3\""), "/a b/python3");
  EXPECT_EQ(Target("\"$(dirname -- \"$(realpath -- \"$0\")\")\"/'python'"), "/env/bin/python");
}

// Whatever the shell would read in another way is an ordinary script of the shell.
TEST(Trampoline, OnlyInItsOwnForm) {
  for (const char* word :
       {"", "python", "a/python", "/a b/python", "$HOME/python", "/a;b", "'/a'b'", "/a\\ b/python",
        "''", "/a/python -u", "\"$(dirname -- \"$(realpath -- \"$0\")\")\"/'../python'",
        "\"$(dirname -- \"$(realpath -- \"$0\")\")\"/'a/python'", "\"$(id)\"/python"}) {
    EXPECT_EQ(Target(word), "") << word;
  }
  EXPECT_EQ(TrampolineTarget("#!/bin/sh\n'''exec' /a/python \"$0\" \"$@\"\necho more\n", "/"), "");
  EXPECT_EQ(TrampolineTarget("#!/bin/bash\n'''exec' /a/python \"$0\" \"$@\"\n' '''\n", "/"), "");
  EXPECT_EQ(TrampolineTarget("#!/bin/sh\n'''exec' /a/python \"$0\" \"$@\"", "/"), "");
  EXPECT_EQ(TrampolineTarget("", "/"), "");
}

}  // namespace
}  // namespace coffer::isolation
