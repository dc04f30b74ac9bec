// SPDX-License-Identifier: Apache-2.0
//
// `coffer run FILE`: that one file comes in, read-only, and its interpreter is found.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/host.h"

namespace coffer::test {
namespace {

class Script : public LevelTest {
 protected:
  TempDir dir_;
  RunResult RunFile(const std::string& name, const std::string& text, const Strings& arguments = {},
                    unsigned mode = 0644) {
    const std::string path = dir_.Write(name, text, mode);
    Strings flags = Flags({path});
    flags.insert(flags.end(), arguments.begin(), arguments.end());
    return RunCoffer(flags, {});
  }
};

TEST_P(Script, Python) {
  const RunResult result =
      RunFile("a.py", "import sys, json, os, hashlib\nprint('args', sys.argv[1:])\nsys.exit(9)\n",
              {"a", "b c", "--x"});
  EXPECT_EQ(result.out, "args ['a', 'b c', '--x']\n") << result.Describe();
  EXPECT_EQ(result.exit, 9);
}

TEST_P(Script, PythonsStandardLibrary) {
  const RunResult result = RunFile(
      "lib.py",
      "import sqlite3, ssl, ctypes, decimal, zlib, bz2, lzma, threading, subprocess, random\n"
      "import multiprocessing, asyncio, email, http.client, xml.etree.ElementTree, tempfile\n"
      "t = threading.Thread(target=lambda: print('thread')); t.start(); t.join()\n"
      "async def f(): await asyncio.sleep(0.01); print('loop')\n"
      "asyncio.run(f())\n"
      "with tempfile.TemporaryFile() as f: f.write(b'x')\n"
      "print('ok')\n");
  EXPECT_EQ(result.out, "thread\nloop\nok\n") << result.Describe();
}

TEST_P(Script, JavaScript) {
  const RunResult result = RunFile(
      "a.js", "console.log('args', JSON.stringify(process.argv.slice(2))); process.exitCode = 4\n",
      {"x", "y z"});
  EXPECT_EQ(result.out, "args [\"x\",\"y z\"]\n") << result.Describe();
  EXPECT_EQ(result.exit, 4) << result.Describe();
}

TEST_P(Script, Shell) {
  const RunResult result = RunFile("a.sh", "echo \"$1\" \"$#\"\nexit 3\n", {"one two", "three"});
  EXPECT_EQ(result.out, "one two 2\n") << result.Describe();
  EXPECT_EQ(result.exit, 3);
}

TEST_P(Script, Perl) {
  const RunResult result = RunFile(
      "a.pl",
      "use strict; use warnings; use List::Util qw(sum); print sum(@ARGV), \"\\n\"; exit 2;\n",
      {"20", "22"});
  EXPECT_EQ(result.out, "42\n") << result.Describe();
  EXPECT_EQ(result.exit, 2) << result.Describe();
}

TEST_P(Script, TheShebangDecides) {
  const RunResult env = RunFile("noext", "#!/usr/bin/env python3\nprint('env')\n", {}, 0755);
  EXPECT_EQ(env.out, "env\n") << env.Describe();
  const RunResult direct =
      RunFile("bash-script", "#!/bin/bash\na=(1 2 3); echo ${#a[@]}\n", {}, 0755);
  EXPECT_EQ(direct.out, "3\n") << direct.Describe();
  const RunResult argument =
      RunFile("with-flag", "#!/bin/sh -e\nfalse\necho not reached\n", {}, 0755);
  EXPECT_EQ(argument.exit, 1) << argument.Describe();
  EXPECT_EQ(argument.out, "");
}

TEST_P(Script, ItsNeighboursStayOutside) {
  dir_.Write("other", "x");
  const std::string other = dir_ / "other";
  const RunResult result = RunFile("a.py",
                                   "import os, sys\n"
                                   "d = os.path.dirname(os.path.abspath(sys.argv[0]))\n"
                                   "try: open('" +
                                       other +
                                       "').read(); print('read')\n"
                                       "except OSError: print('hidden')\n"
                                       "print(os.path.exists('" +
                                       other + "'), 'other' in os.listdir(d))\n");
  EXPECT_TRUE(Contains(result.out, "hidden\n")) << result.Describe();
  if (container()) {
    // Without a root of its own (process level) Landlock hides what a file holds, not that there is one.
    EXPECT_EQ(result.out, "hidden\nFalse False\n") << result.Describe();
  }
}

TEST_P(Script, ItCannotChangeItself) {
  const std::string text =
      "import sys\ntry:\n  open(sys.argv[0], 'a').write('#')\n  print('written')\nexcept OSError: "
      "print('refused')\n";
  const RunResult result = RunFile("a.py", text);
  EXPECT_EQ(result.out, "refused\n") << result.Describe();
  EXPECT_EQ(ReadFile(dir_ / "a.py"), text);
}

TEST_P(Script, StdinIsTheCallers) {
  const std::string path = dir_.Write("cat.py", "import sys; print(sys.stdin.read().upper())");
  const RunResult result = RunCoffer(Flags({path}), {}, {.input = "hello"});
  EXPECT_EQ(result.out, "HELLO\n") << result.Describe();
}

TEST_P(Script, WhatCannotBeRunIsSaid) {
  const RunResult unknown = RunFile("data.xyz", "neither shebang nor a known extension\n");
  EXPECT_EQ(unknown.exit, 120) << unknown.Describe();
  EXPECT_TRUE(unknown.err.starts_with("coffer: ")) << unknown.err;
  const RunResult missing = RunCoffer(Flags({dir_ / "missing.py"}), {});
  EXPECT_EQ(missing.exit, 127) << missing.Describe();
  const RunResult directory = RunCoffer(Flags({dir_.path()}), {});
  EXPECT_EQ(directory.exit, 120) << directory.Describe();
  const RunResult interpreter = RunFile("x", "#!/nonexistent/interpreter\n", {}, 0755);
  EXPECT_EQ(interpreter.exit, 127) << interpreter.Describe();
}

TEST_P(Script, AVariableThatWasNotPassedOnIsNamed) {
  const std::string path = dir_.Write(
      "a.py", "import os\nprint(os.environ['SOME_API_KEY'])\nprint(os.environ['OTHER_KEY'])\n");
  const auto run = [&](const Strings& more, const Strings& environment) {
    Strings flags = Flags({path});
    flags.insert(flags.begin(), more.begin(), more.end());
    RunOptions options;
    options.environment = environment;
    return RunCoffer(flags, {}, options);
  };
  const Strings path_only = {"PATH=/usr/bin:/bin"};
  const Strings with_key = {"PATH=/usr/bin:/bin", "SOME_API_KEY=not-to-be-shown"};
  const RunResult missed = run({}, with_key);
  EXPECT_EQ(missed.exit, 1) << missed.Describe();
  EXPECT_TRUE(Contains(missed.err, "--env \"SOME_API_KEY=$SOME_API_KEY\"")) << missed.err;
  EXPECT_FALSE(Contains(missed.err, "not-to-be-shown")) << missed.err;
  const RunResult nowhere = run({}, path_only);
  EXPECT_FALSE(Contains(nowhere.err, "is set here")) << "the control\n" << nowhere.err;
  const RunResult passed = run({"--env", "SOME_API_KEY=x"}, with_key);
  EXPECT_EQ(passed.exit, 1) << passed.Describe();
  EXPECT_FALSE(Contains(passed.err, "is set here")) << passed.err;
}

TEST_P(Script, AFileBesideItIsMissedByName) {
  dir_.Write("helper.py", "print('helped')\n");
  dir_.Write("data.csv", "1,2\n");
  dir_.Write("unused.py", "");
  const RunResult imported = RunFile("a.py", "import helper\n");
  EXPECT_EQ(imported.exit, 1) << imported.Describe();
  EXPECT_TRUE(Contains(imported.err, "note: helper.py lies beside the script")) << imported.err;
  EXPECT_TRUE(Contains(imported.err, "--in " + (dir_ / "helper.py"))) << imported.err;
  const RunResult opened = RunFile("b.py", "print(open('data.csv').read())\n");
  EXPECT_TRUE(Contains(opened.err, "note: data.csv lies beside the script")) << opened.err;
  // What the note says works. A script that succeeds, or names no neighbour, gets none.
  const RunResult copied = RunCoffer(Flags({"--in", dir_ / "helper.py", dir_ / "a.py"}), {});
  EXPECT_EQ(copied.out, "helped\n") << copied.Describe();
  const RunResult worked = RunFile("c.py", "print('data.csv')\n");
  EXPECT_FALSE(Contains(worked.err, "beside the script")) << worked.err;
  const RunResult failed = RunFile("d.py", "import sys; sys.exit('helpers, data.csvx')\n");
  EXPECT_EQ(failed.exit, 1) << failed.Describe();
  EXPECT_FALSE(Contains(failed.err, "beside the script")) << failed.err;
}

TEST_P(Script, AFlagBehindTheFileIsTheScripts) {
  const RunResult failed = RunFile("a.py", "import sys; sys.exit(3)\n", {"--memory=1GiB"});
  EXPECT_EQ(failed.exit, 3) << failed.Describe();
  EXPECT_TRUE(Contains(failed.err, "note: --memory went to the script")) << failed.Describe();
  const RunResult worked = RunFile("a.py", "import sys; print(sys.argv[1])\n", {"--memory=1GiB"});
  EXPECT_EQ(worked.out, "--memory=1GiB\n") << worked.Describe();
  EXPECT_FALSE(Contains(worked.err, "note: --memory")) << worked.Describe();
  const RunResult own = RunFile("a.py", "import sys; sys.exit(3)\n", {"--own", "-x"});
  EXPECT_FALSE(Contains(own.err, "went to the script")) << own.Describe();
}

TEST_P(Script, NamesThatLookLikeFlagsOrHoldSpaces) {
  const RunResult spaced = RunFile("with space.py", "print('ran')\n");
  EXPECT_EQ(spaced.out, "ran\n") << spaced.Describe();
  dir_.Write("-dash.sh", "echo dashed\n");
  const RunResult dashed = RunCoffer(Flags({"./-dash.sh"}), {}, {.cwd = dir_.path()});
  EXPECT_EQ(dashed.out, "dashed\n") << dashed.Describe();
}

TEST_P(Script, TheReceiptHashesTheCode) {
  const RunResult result = RunFile("a.py", "print(1)\n");
  ASSERT_TRUE(result.receipt.is_object()) << result.Describe();
  EXPECT_TRUE(result.receipt["code_hash"].is_string()) << result.receipt["code_hash"].dump();
  const RunResult other = RunFile("b.py", "print(2)\n");
  EXPECT_TRUE(other.receipt["code_hash"].is_string()) << other.Describe();
  EXPECT_NE(result.receipt["code_hash"], other.receipt["code_hash"]);
  EXPECT_EQ(result.receipt["code_hash"], RunFile("c.py", "print(1)\n").receipt["code_hash"]);
}

INSTANTIATE_TEST_SUITE_P(Level, Script, ::testing::Values("container", "process"), LevelTestName);

}  // namespace
}  // namespace coffer::test
