// SPDX-License-Identifier: Apache-2.0
//
// PE: staying behind. Whatever a payload starts or writes is gone when the call is.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/host.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

class PersistenceEscape : public LevelTest {};

TEST_P(PersistenceEscape, PE_01_StartupFiles) {
  TempDir home;
  const std::string own = home.Write(".bashrc", "# nothing", 0666);
  EXPECT_TRUE(Contains(RunOutside({"write", own, "evil"}).out, "OPEN")) << "NO-CONTROL";
  home.Write(".bashrc", "# nothing", 0666);
  const Strings places = {own,
                          "/etc/cron.d/x",
                          "/var/spool/cron/crontabs/x",
                          "/etc/rc.local",
                          "/etc/profile.d/x.sh",
                          "/root/.bashrc",
                          "/etc/ld.so.preload",
                          "/etc/systemd/system/x.service",
                          "/etc/sudoers.d/x",
                          "/etc/passwd",
                          "/root/.ssh/authorized_keys",
                          "/usr/lib/python3/dist-packages/sitecustomize.py"};
  std::map<std::string, std::optional<std::string>> before;
  for (const std::string& place : places) {
    before[place] = ReadFile(place);
    const RunResult result = RunProbe(Flags(), {"write", place, "evil"});
    EXPECT_TRUE(Contains(result.out, "REFUSED")) << result.Describe();
  }
  for (const std::string& place : places) {
    EXPECT_EQ(ReadFile(place), before[place]) << place;
  }
}

TEST_P(PersistenceEscape, PE_02_Daemons) {
  {
    // Control: outside, the daemon stays.
    const std::string token = NewToken();
    RunOutside({"daemonize", token});
    const auto left = FindProcesses(token);
    EXPECT_EQ(left.size(), 1U) << "NO-CONTROL";
    for (const pid_t pid : left) {
      kill(pid, SIGKILL);
    }
  }
  for (const char* verb : {"daemonize", "daemonize-holding", "respawn"}) {
    const std::string token = NewToken();
    // Room for those that are dead and not reaped yet: a busy machine has more than 32 of them.
    const RunResult result =
        RunProbe(Flags({"--wall", "20s", "--processes", "2000"}), {verb, token});
    // The command has ended, so the call ends: nobody waits for what it left behind.
    EXPECT_EQ(result.exit, 0) << verb << "\n" << result.Describe();
    EXPECT_LT(result.took.count(), 20.0) << verb << "\n" << result.Describe();
    EXPECT_FALSE(result.timed_out) << verb << ": somebody still holds stdout";
    EXPECT_TRUE(FindProcesses(token).empty()) << verb;
  }
}

TEST_P(PersistenceEscape, PE_04_InjectionThroughEnvironmentHitsOnlyTheInside) {
  TempDir dir;
  const std::string witness = dir / "witness";
  for (const std::string& variable :
       {std::string("LD_PRELOAD=/workspace/none.so"), std::string("LD_LIBRARY_PATH=/workspace"),
        std::string("LD_AUDIT=/workspace/none.so"), "BASH_ENV=" + witness, "ENV=" + witness,
        std::string("PYTHONSTARTUP=/workspace/x.py"),
        std::string("GLIBC_TUNABLES=glibc.malloc.check=3"),
        std::string("NODE_OPTIONS=--require /workspace/x.js"), std::string("IFS=/"),
        std::string("PATH=/workspace")}) {
    const RunResult result = RunProbe(Flags({"--env", variable}), {"exit", "5"});
    EXPECT_EQ(result.exit, 5) << variable << "\n" << result.Describe();
  }
  // The caller's own such variables do not get in and do not change coffer.
  RunOptions caller;
  caller.environment = Strings{"PATH=/usr/bin:/bin", "LD_PRELOAD=/nonexistent/evil.so",
                               "LD_LIBRARY_PATH=/nonexistent", "BASH_ENV=/nonexistent",
                               "COFFER_TEST_TOKEN=leak-of-the-caller"};
  EXPECT_TRUE(Contains(RunProgram({"env"}, caller).out, "leak-of-the-caller")) << "NO-CONTROL";
  const RunResult result = RunCoffer(Flags(), {"env"}, caller);
  EXPECT_EQ(result.exit, 0) << result.Describe();
  EXPECT_FALSE(Contains(result.out, "LD_PRELOAD") || Contains(result.out, "leak-of-the-caller"))
      << result.Describe();
}

TEST_P(PersistenceEscape, PE_04_ACommandIsNotTakenFromTheSharedDirectory) {
  // A shim called `env` in a --rw directory and a PATH that points there: the command was resolved outside.
  TempDir dir;
  const std::string shared = dir.MakeDir("shared", 0777);
  dir.Write("shared/env", "#!/bin/sh\necho SHIM\n", 0755);
  if (!container() && IsRoot()) {
    EXPECT_EQ(RunProbe(Flags({"--rw", shared}), {"exit", "0"}).exit, 120);
    return;
  }
  EXPECT_EQ(RunProgram({"sh", "-c", "PATH=" + shared + ":/usr/bin:/bin; env"}).out, "SHIM\n")
      << "NO-CONTROL";
  const RunResult result =
      RunCoffer(Flags({"--rw", shared, "--env", "PATH=" + shared + ":/usr/bin:/bin"}), {"env"});
  EXPECT_FALSE(Contains(result.out, "SHIM")) << result.Describe();
  EXPECT_TRUE(Contains(result.out, "PATH=" + shared)) << result.Describe();
}

TEST_P(PersistenceEscape, PE_09_TheBoundaryDiesWithItsSupervisor) {
  {
    // Control: outside, a child outlives its parent.
    const std::string token = NewToken();
    Background parent({"sh", "-c", "bash -c 'exec -a " + token + " sleep 60' & echo ready; wait"});
    ASSERT_TRUE(parent.WaitForOutput("ready"));
    ASSERT_TRUE(WaitUntil([&] { return FindProcesses(token).size() >= 2; }));
    parent.Signal(SIGKILL);
    ASSERT_TRUE(WaitUntil([&] { return parent.ended(); }));
    const std::vector<pid_t> left = FindProcesses(token);
    EXPECT_FALSE(left.empty()) << "NO-CONTROL";
    for (const pid_t pid : left) {
      kill(pid, SIGKILL);
    }
  }
  for (const char* verb : {"wait", "stubborn", "stop-self"}) {
    LiveBoundary boundary(Flags(), verb);
    ASSERT_TRUE(boundary.ok()) << boundary.Why();
    const Strings cgroups = CgroupDirs(boundary.payload());
    kill(boundary.supervisor(), SIGKILL);
    EXPECT_TRUE(WaitUntil([&] { return FindProcesses(boundary.token()).empty(); }, Seconds(20)))
        << verb << " outlived its supervisor";
    EXPECT_TRUE(WaitUntil(
        [&] { return !Exists("/proc/" + std::to_string(boundary.init()) + "/ns"); }, Seconds(20)))
        << verb;
    boundary.process().Wait(
        Seconds(20));  // reaped: a pid that exists would still answer for its cgroups
    // Directories of a killed supervisor go with the next start.
    EXPECT_EQ(RunProbe(Flags(), {"exit", "0"}).exit, 0);
    for (const std::string& cgroup : cgroups) {
      if (Contains(cgroup, "coffer")) {
        EXPECT_FALSE(Exists(cgroup)) << cgroup << " stayed after the next start";
      }
    }
  }
}

TEST_P(PersistenceEscape, PE_12_NoBoundaryInsideABoundary) {
  // coffer itself inside: it may say no, but must not hand out anything.
  const RunResult control = RunProgram({CofferPath(), "run", "--", "/bin/echo", "made"});
  EXPECT_EQ(control.out, "made\n") << "NO-CONTROL: " << control.Describe();
  const RunResult result = RunCoffer(Flags(), {CofferPath(), "run", "--", "/bin/echo", "made"});
  // The one inside is told by the kernel that there are no namespaces to be had, and says so.
  EXPECT_EQ(result.exit, 125) << result.Describe();
  EXPECT_TRUE(Contains(result.err, "coffer: isolation.host: ")) << result.Describe();
  EXPECT_EQ(result.out, "") << result.Describe();
}

TEST_P(PersistenceEscape, AP_14_AFakeExitRecordIsIgnored) {
  RunOptions alone;  // a pipe that the test itself was started with would end the control
  alone.in_child = [] { close_range(3, ~0U, 0); };
  const RunResult outside = RunOutside({"fake-record"}, alone);
  EXPECT_TRUE(outside.exit == 7 && Contains(outside.out, "\"code\":0"))
      << "NO-CONTROL: the probe says 0 and ends with 7";
  const RunResult result = RunProbe(Flags(), {"fake-record"});
  EXPECT_EQ(result.out, outside.out) << "it did not get as far inside\n" << result.Describe();
  EXPECT_EQ(result.exit, 7) << result.Describe();
  ASSERT_TRUE(result.receipt.is_object());
  EXPECT_EQ(result.receipt["exit"]["code"], 7);
  EXPECT_EQ(result.receipt["outcome"], "error") << "7 is not success";
}

TEST_P(PersistenceEscape, TheExitCodesOfCofferCannotBeForgedIntoAReceipt) {
  // The control: the statuses where coffer gives them, and what the receipt says then.
  const RunResult refused =
      RunCoffer(Flags({"--cwd", "/no/such/place"}), {ProbePath(), "exit", "0"});
  EXPECT_EQ(refused.exit, 120) << "NO-CONTROL: " << refused.Describe();
  ASSERT_TRUE(refused.receipt.is_object());
  EXPECT_EQ(refused.receipt["outcome"], "denied") << "NO-CONTROL: " << refused.Describe();
  const RunResult ended = RunProbe(Flags({"--wall", "500ms"}), {"wait", NewToken()});
  EXPECT_EQ(ended.exit, 122) << "NO-CONTROL: " << ended.Describe();
  EXPECT_EQ(ended.ErrorClass(), "limit.wall") << "NO-CONTROL: " << ended.Describe();
  // A payload may exit with 122, but the receipt knows better.
  for (const char* code : {"120", "121", "122", "125"}) {
    const RunResult result = RunProbe(Flags(), {"exit", code});
    EXPECT_EQ(result.exit, atoi(code));
    ASSERT_TRUE(result.receipt.is_object());
    EXPECT_EQ(result.receipt["exit"]["code"], atoi(code)) << result.Describe();
    EXPECT_EQ(result.receipt["outcome"], "error") << result.Describe();
    EXPECT_FALSE(result.ErrorClass().starts_with("limit.")) << result.Describe();
  }
}

INSTANTIATE_TEST_SUITE_P(Level, PersistenceEscape, ::testing::Values("container", "process"),
                         LevelTestName);

}  // namespace
}  // namespace coffer::test
