// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/runtime.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "inside.h"
#include "isolation/runtime/describe.h"
#include "isolation/runtime/program.h"
#include "isolation/runtime/real_path.h"
#include "tests/support/temp_dir.h"

namespace coffer::isolation {
namespace {

const ResolveOptions kFreshCache{.use_cache = false};

// Runs the system's program of that name in its default runtime, and expects it to print `expected` as its last line.
void ExpectInside(std::vector<std::string> argv, const std::string& expected) {
  if (argv[0].find('/') == std::string::npos) {
    const std::string program = FindSystemProgram(argv[0]);
    if (program.empty()) {
      GTEST_SKIP() << "this host has no " << argv[0];
    }
    argv[0] = program;  // PATH may name another one first
  }
  const Result<Command> command = ResolveCommand(argv, {}, kFreshCache);
  ASSERT_TRUE(command.ok()) << command.error().message;
  const InsideResult result = RunInside(command->runtime, command->program, command->argv);
  if (!result.supported) {
    GTEST_SKIP() << "this host allows neither root nor user namespaces";
  }
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_TRUE(result.output.ends_with(expected + "\n")) << result.output;
}

TEST(Runtime, PythonIsComplete) {
  ExpectInside({"python3", "-c", R"(
import ctypes, ssl, sqlite3, json, hashlib, bz2, lzma, zlib, uuid, decimal, asyncio, threading, subprocess, readline
import curses, xml.etree.ElementTree, multiprocessing, datetime, socket, mmap, zipfile, unicodedata, ctypes.util
assert ctypes.CDLL('libc.so.6').getpid() > 0
assert ctypes.CDLL(None).getpid() > 0
assert ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 3)() == 3
assert sqlite3.connect(':memory:').execute('select 6*7').fetchone() == (42,)
assert ssl.create_default_context() is not None
t = threading.Thread(target=lambda: None); t.start(); t.join()
ctypes.CDLL('libgcc_s.so.1')
print('complete'))"},
               "complete");
}

TEST(Runtime, EveryPythonModuleThatLoadsOutsideLoadsInside) {
  const std::string script = R"(
import importlib, os, sysconfig, warnings
warnings.simplefilter('ignore')
good = []
for name in sorted(os.listdir(sysconfig.get_path('platstdlib') + '/lib-dynload')):
    name = name.split('.')[0]
    if name.startswith(('_test', 'xx', '_xx', '_ctypes_test', 'nis')): continue
    try: importlib.import_module(name); good.append(name)
    except ImportError: pass
print(' '.join(good)))";
  const std::string python = FindSystemProgram("python3");
  if (python.empty()) {
    GTEST_SKIP() << "this host has no python3";
  }
  const test::TempDir dir;
  const std::string file = dir.Write("list.py", script);
  FILE* const outside = ::popen((python + " " + file).c_str(), "r");
  ASSERT_NE(outside, nullptr);
  char expected[65536] = {};
  const size_t size = ::fread(expected, 1, sizeof(expected) - 1, outside);
  ::pclose(outside);
  ASSERT_GT(size, 10U);
  ExpectInside({"python3", "-c", script}, std::string(expected, size - 1));
}

TEST(Runtime, NodeIsComplete) {
  ExpectInside(
      {"node", "-e",
       "const c = require('crypto'); require('zlib').gzipSync('x'); require('worker_threads');"
       "if (c.createHash('sha256').update('').digest('hex').length !== 64) process.exit(3);"
       "setTimeout(() => console.log('complete'), 1)"},
      "complete");
}

TEST(Runtime, PerlIsComplete) {
  ExpectInside({"perl", "-e",
                "use strict; use POSIX; use Data::Dumper; use JSON::PP; use Digest::SHA; use "
                "Encode; use Socket; use Storable;"
                "use File::Temp; use Time::HiRes; use List::Util; print \"complete\\n\""},
               "complete");
}

TEST(Runtime, ShellToolsWork) {
  ExpectInside({"sh", "-c",
                "set -e; printf 'b\\na\\n' | sort | head -1 | tr a c | grep -q c; echo hi | gzip | "
                "gunzip | grep -q hi;"
                "echo x | sed s/x/y/ | awk '{ print $1 }' | egrep -q y; mkdir d; touch d/f; find d "
                "-type f | xargs ls >/dev/null;"
                "tar cf a.tar d; tar tf a.tar | grep -q d/f; seq 3 | wc -l | grep -q 3; date "
                ">/dev/null; /bin/ls /bin/sh >/dev/null;"
                "expr 2 + 3 | grep -q 5; echo abc | sha256sum | cut -c1-8 >/dev/null; diff d/f "
                "d/f; env | grep -q PATH; echo complete"},
               "complete");
  ExpectInside(
      {"bash", "-c",
       "diff <(echo a) <(echo a) && [[ $BASH_VERSION ]] && ls >/dev/null && echo complete"},
      "complete");
}

// Each program of the set starts: no library of any of them is missing.
TEST(Runtime, EveryProgramOfTheShellStarts) {
  const Result<RuntimeSet> set = ResolveRuntimes({"bash"}, kFreshCache);
  ASSERT_TRUE(set.ok()) << set.error().message;
  const InsideResult result = RunInside(*set, "/bin/sh", {"sh", "-c", R"(
for p in /usr/bin/*; do
  "$p" --version </dev/null >out 2>&1
  code=$?
  if [ $code = 127 ] || [ $code = 126 ]; then echo "$p: $code"; cat out; fi
done; echo done)"});
  if (!result.supported) {
    GTEST_SKIP() << "this host allows neither root nor user namespaces";
  }
  EXPECT_EQ(result.output, "done\n");
}

TEST(Runtime, BusyboxHasItsApplets) {
  ExpectInside({"busybox", "sh", "-c",
                "ls / | sort | wc -l >/dev/null && awk 'BEGIN { print \"complete\" }'"},
               "complete");
}

TEST(Runtime, HostUsrRunsAnything) {
  const Result<Command> command =
      ResolveCommand({"awk", "BEGIN { print 7 }"}, {"host-usr"}, kFreshCache);
  ASSERT_TRUE(command.ok()) << command.error().message;
  const InsideResult result = RunInside(command->runtime, command->program, command->argv);
  if (!result.supported) {
    GTEST_SKIP() << "this host allows neither root nor user namespaces";
  }
  EXPECT_EQ(result.output, "7\n");
}

TEST(Runtime, ASingleProgramIsThreeFiles) {
  const Result<Command> command = ResolveCommand({"/bin/true"}, {}, kFreshCache);
  ASSERT_TRUE(command.ok()) << command.error().message;
  EXPECT_EQ(command->argv, std::vector<std::string>{"/bin/true"});
  EXPECT_TRUE(command->runtimes.empty());
  EXPECT_EQ(command->runtime.files.size(), 3U);
  EXPECT_EQ(FindInside(command->runtime, "/bin/true"),
            FindInside(command->runtime, command->program));
  const InsideResult result = RunInside(command->runtime, command->program, command->argv);
  if (!result.supported) {
    GTEST_SKIP() << "this host allows neither root nor user namespaces";
  }
  EXPECT_EQ(result.status, 0) << result.output;
}

TEST(Runtime, NoSetuidNoCompilerNoPackageManagerNoNetworkTool) {
  const std::set<std::string> all_forbidden = {
      "gcc",  "g++",  "cc",   "c++",    "clang",   "ld",      "as",     "make",   "apt", "apt-get",
      "dpkg", "pip",  "npm",  "cargo",  "su",      "sudo",    "mount",  "umount", "ip",  "nc",
      "ssh",  "curl", "wget", "chroot", "unshare", "nsenter", "strace", "gdb"};
  for (const std::string_view name : RuntimeNames()) {
    if (name == "host-usr") {
      continue;  // wide by definition
    }
    // A runtime has what it is named after.
    std::set<std::string> forbidden = all_forbidden;
    if (name == "gcc") {
      for (const char* part : {"gcc", "g++", "cc", "c++", "ld", "as", "make"}) {
        forbidden.erase(part);
      }
    } else if (name == "npm") {
      forbidden.erase("npm");
    }
    const bool compound = name == "git" || name == "gcc" || name == "java";  // trees of programs
    const Result<RuntimeSet> set = ResolveRuntimes({std::string(name)}, kFreshCache);
    if (!set.ok()) {
      EXPECT_EQ(set.error().kind, ErrorKind::kHost) << set.error().message;
      continue;
    }
    EXPECT_FALSE(set->files.empty());
    for (const RuntimeFile& file : set->files) {
      struct stat status{};
      ASSERT_EQ(::lstat(file.host.c_str(), &status), 0) << file.host;
      EXPECT_EQ(file.directory, S_ISDIR(status.st_mode)) << file.host;
      EXPECT_EQ(file.directory, !S_ISREG(status.st_mode)) << file.host;
      if (!file.directory) {
        EXPECT_EQ(status.st_mode & (S_ISUID | S_ISGID), 0U) << file.host;
        EXPECT_FALSE(forbidden.contains(std::string(BaseName(file.inside)))) << file.inside;
        EXPECT_FALSE(forbidden.contains(std::string(BaseName(file.host)))) << file.host;
      } else {
        EXPECT_TRUE(!file.executable || compound) << file.host;
      }
      EXPECT_EQ(std::filesystem::canonical(file.host).string(), file.host);  // no link on the way
    }
    for (const auto& [link, target] : set->links) {
      EXPECT_FALSE(forbidden.contains(std::string(BaseName(link)))) << link;
      EXPECT_FALSE(target.starts_with('/')) << link;
      for (const RuntimeFile& file : set->files) {
        EXPECT_FALSE(file.inside.starts_with(link + "/")) << link << " is above " << file.inside;
      }
    }
  }
}

TEST(Runtime, TheShellIsNotEndless) {
  const Result<RuntimeSet> set = ResolveRuntimes({"sh"}, kFreshCache);
  ASSERT_TRUE(set.ok());
  EXPECT_LE(set->files.size(), 130U);
}

TEST(Runtime, SeveralTogether) {
  const Result<RuntimeSet> both = ResolveRuntimes({"sh", "perl"}, kFreshCache);
  ASSERT_TRUE(both.ok()) << both.error().message;
  EXPECT_FALSE(FindInside(*both, "/usr/bin/perl").empty());
  EXPECT_FALSE(FindInside(*both, "/bin/ls").empty());
  std::set<std::string> names;
  for (const RuntimeFile& file : both->files) {
    EXPECT_TRUE(names.insert(file.inside).second) << file.inside;
  }
}

TEST(Runtime, UnknownNamesAreRefusedWithTheKnownOnes) {
  const Result<RuntimeSet> set = ResolveRuntimes({"ruby"}, kFreshCache);
  ASSERT_FALSE(set.ok());
  EXPECT_EQ(set.error().kind, ErrorKind::kRefused);
  EXPECT_NE(set.error().hint.find("python3, node"), std::string::npos);
}

TEST(Runtime, TheReportHasEveryRuntime) {
  const test::TempDir dir;
  const std::vector<RuntimeReport> reports = DescribeRuntimes({.cache_dir = dir.path() + "/c"});
  ASSERT_EQ(reports.size(), RuntimeNames().size());
  for (const RuntimeReport& report : reports) {
    if (report.found && report.name != "host-usr") {
      EXPECT_GT(*report.files, 0U) << report.name;
      EXPECT_GT(*report.bytes, 1000U) << report.name;
      EXPECT_TRUE(report.program.starts_with('/'));
    }
    EXPECT_EQ(report.found, report.problem.empty()) << report.problem;
  }
}

}  // namespace
}  // namespace coffer::isolation
