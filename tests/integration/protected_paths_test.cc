// SPDX-License-Identifier: Apache-2.0
//
// A call that could write what Cofferdam believes (its state, its cache of runtimes) could widen every later call: such a
// mount is refused before anything runs.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/run.h"

namespace coffer::test {
namespace {

TEST(ProtectedPaths, AreNeverMounted) {
  TempDir dir;
  dir.MakeDir("above");
  dir.MakeDir("above/state");
  dir.MakeDir("cache");
  dir.MakeDir("work");
  RunOptions options;
  options.environment =
      Strings{"PATH=/usr/bin:/bin", "HOME=" + dir.path(), "COFFER_STATE=" + dir / "above/state",
              "XDG_CACHE_HOME=" + dir / "cache"};
  const auto run = [&](const std::string& flag, const std::string& host) {
    return RunProgram({CofferPath(), "run", flag, host + ":/d", "--", "true"}, options);
  };
  Strings closed = {dir / "above/state", dir / "above"};
  closed.push_back(IsRoot() ? "/var/cache/coffer" : dir / "cache");
  for (const std::string& host : closed) {
    EXPECT_EQ(run("--rw", host).exit, 120) << host;
    // Not even the word for the system's directories opens them.
    for (const char* flag : {"--ro", "--dangerously-rw"}) {
      const RunResult result = run(flag, host);
      EXPECT_EQ(result.exit, 120) << flag << " " << host << result.Describe();
      EXPECT_TRUE(Contains(result.err, "policy.path.state")) << result.Describe();
    }
  }
  // The home around all of them is refused for being one, by root and by users.
  for (const char* flag : {"--ro", "--rw"}) {
    const RunResult home = run(flag, dir.path());
    EXPECT_EQ(home.exit, 120) << home.Describe();
    EXPECT_TRUE(Contains(home.err, "policy.path.broad")) << home.Describe();
  }
  EXPECT_EQ(run("--rw", dir / "work").exit, 0) << "the control";

  // Manifests decide what tools may do: they can be read, not written.
  options.environment->push_back("COFFER_TOOLS=" + dir / "work/tools:" + dir / "other");
  EXPECT_EQ(run("--rw", dir / "work").exit, 120);
  EXPECT_EQ(run("--ro", dir / "work").exit, 0);
}

// A call that could write beside this program would put another one there, or the daemon that the next call starts.
TEST(ProtectedPaths, TheProgramsThatRunOutsideAreNotTheCallsToMake) {
  TempDir dir;
  dir.MakeDir("opt/bin");
  dir.MakeDir("opt/work");
  const std::string coffer = dir / "opt/bin/coffer";
  std::filesystem::copy_file(CofferPath(), coffer);
  RunOptions options;
  options.environment = Strings{"PATH=/usr/bin:/bin", "HOME=" + dir / "home"};
  const auto run = [&](const Strings& flags) {
    Strings words = {coffer, "run"};
    words.insert(words.end(), flags.begin(), flags.end());
    words.insert(words.end(), {"--", "sh", "-c", "for d in /d /out .; do : > $d/cofferd; done"});
    return RunProgram(words, options);
  };
  run({"--rw", dir / "opt/work:/d"});
  EXPECT_TRUE(Exists(dir / "opt/work/cofferd")) << "NO-CONTROL";
  for (const Strings& flags : {Strings{"--rw", dir / "opt:/d"}, Strings{"--rw", dir / "opt/bin:/d"},
                               Strings{"--out", dir / "opt/bin"}}) {
    const RunResult result = run(flags);
    EXPECT_EQ(result.exit, 120) << flags[0] << result.Describe();
    EXPECT_TRUE(Contains(result.err, "policy.path.state")) << flags[0] << result.Describe();
    EXPECT_FALSE(Exists(dir / "opt/cofferd") || Exists(dir / "opt/bin/cofferd")) << flags[0];
  }
  // Where it is looked for next, also before it is there.
  dir.MakeDir("opt/libexec");
  EXPECT_EQ(run({"--rw", dir / "opt/libexec:/d"}).exit, 120);
  EXPECT_NE(run({"--ro", dir / "opt/bin:/d"}).exit, 120) << "it may be read";
  // A project may hold them, as a checkout does: what is there cannot be changed, what is made is set aside.
  const std::string before = ReadFile(coffer).value_or("");
  const RunResult made = RunProgram({coffer, "run", "--project", dir / "opt", "--", "sh", "-c",
                                     "echo x > work/new; cp bin/coffer c; echo evil > bin/cofferd; "
                                     "echo evil >> bin/coffer; mv c bin/coffer; mv bin b"},
                                    options);
  EXPECT_TRUE(Exists(dir / "opt/work/new")) << "NO-CONTROL: " << made.Describe();
  EXPECT_FALSE(Exists(dir / "opt/bin/cofferd")) << made.Describe();
  EXPECT_TRUE(Contains(made.err, "coffer on this host runs")) << made.Describe();
  EXPECT_TRUE(ReadFile(coffer) == before) << made.Describe();
}

}  // namespace
}  // namespace coffer::test
