// SPDX-License-Identifier: Apache-2.0
//
// XT: two boundaries at once, and one after another.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "tests/support/host.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

class TenantEscape : public LevelTest {};

TEST_P(TenantEscape, XT_01_OneCannotSeeTheOther) {
  LiveBoundary first(Flags());
  ASSERT_TRUE(first.ok()) << first.Why();
  EXPECT_TRUE(Contains(RunOutside({"proc-grep", first.token(), "cmdline"}).out, "OPEN"))
      << "NO-CONTROL";
  const RunResult result =
      RunProbe(Flags(), {"proc-grep", first.token(), "cmdline", "environ", "maps", "status"});
  ExpectRan(result);
  EXPECT_FALSE(Contains(result.out, "OPEN")) << result.Describe();
}

TEST_P(TenantEscape, XT_03_OneCannotTouchTheOther) {
  LiveBoundary first(Flags());
  ASSERT_TRUE(first.ok()) << first.Why();
  const std::string pid = std::to_string(first.payload());
  for (const Strings& verb : {Strings{"ptrace-pid", pid}, {"pidfd-getfd", pid}}) {
    const std::string label = verb[0] == "ptrace-pid" ? pid : "pidfd_getfd";
    EXPECT_TRUE(Contains(RunOutside(verb).out, label + ": OPEN") || TracingIsForbidden())
        << "NO-CONTROL: " << verb[0] << " from outside, by the same user";
    const RunResult result = RunProbe(Flags(), verb);
    EXPECT_TRUE(Contains(result.out, label + ": REFUSED")) << verb[0] << "\n" << result.Describe();
  }
  EXPECT_FALSE(first.process().ended());
}

TEST_P(TenantEscape, XT_03_OneCannotSignalTheOther) {
  if (!SignalsStayInside()) {
    GTEST_SKIP()
        << "an ordinary user has one uid, and this kernel's Landlock does not scope signals "
           "(ABI 6, Linux 6.12)";
  }
  LiveBoundary first(Flags());
  ASSERT_TRUE(first.ok()) << first.Why();
  for (const pid_t target : {first.payload(), first.init(), first.supervisor()}) {
    // Signal 0 is permitted to whoever may send one that ends it.
    EXPECT_EQ(RunOutside({"kill", std::to_string(target), "0"}).out, "OPEN\n") << "NO-CONTROL";
    const RunResult result = RunProbe(Flags(), {"kill", std::to_string(target), "9"});
    EXPECT_TRUE(Contains(result.out, "REFUSED")) << target << "\n" << result.Describe();
  }
  EXPECT_FALSE(first.process().ended());
  EXPECT_FALSE(FindProcesses(first.token()).empty()) << "the other boundary's payload was killed";
}

TEST_P(TenantEscape, XT_05_NothingOfTheFirstIsThereForTheSecond) {
  const std::string flag = NewToken();
  // At the process level the workspace and /tmp have other names, which these two variables hold.
  const std::string places = "$HOME $TMPDIR /workspace /tmp /dev/shm /var/tmp /home /root /run";
  const std::string look = "for d in " + places + "; do cat $d/* $d/.[a-z]* 2>/dev/null; done; pwd";
  const RunResult first = RunCoffer(Flags(), {"sh", "-c",
                                              "for d in " + places + "; do echo " + flag +
                                                  " > $d/" + flag + "; done 2>/dev/null; " + look});
  EXPECT_TRUE(Contains(first.out, flag)) << "NO-CONTROL: not even the first call finds it\n"
                                         << first.Describe();
  const RunResult second = RunCoffer(Flags(), {"sh", "-c", look});
  EXPECT_FALSE(Contains(second.out, flag)) << second.Describe();
  EXPECT_TRUE(Contains(second.out, "/workspace")) << second.Describe();
}

TEST_P(TenantEscape, XT_05_SharedMemoryDoesNotOutliveACall) {
  const int key = 0x20000000 | (getpid() & 0xffffff);
  RunOutside({"ipc-leave", std::to_string(key)});
  EXPECT_TRUE(Contains(RunOutside({"sysv-shm", std::to_string(key)}).out, "OPEN")) << "NO-CONTROL";
  EXPECT_TRUE(Contains(RunOutside({"ipc-remove", std::to_string(key)}).out, "shm: OPEN"));
  const RunResult made =
      RunProbe(Flags({"--seccomp", "compat"}), {"sysv-create", std::to_string(key)});
  EXPECT_EQ(Contains(made.out, "OPEN"), container()) << "NO-CONTROL\n" << made.Describe();
  const RunResult outside = RunOutside({"sysv-shm", std::to_string(key)});
  EXPECT_TRUE(Contains(outside.out, "ENOENT")) << "left on the host: " << outside.out;
  const RunResult second = RunProbe(Flags(), {"sysv-shm", std::to_string(key)});
  EXPECT_TRUE(Contains(second.out, "REFUSED")) << second.Describe();
  EXPECT_FALSE(Contains(second.out, "OPEN")) << second.Describe();
}

TEST_P(TenantEscape, XT_14_TheProgramsOfOthersAreUnchanged) {
  // The runtime's files are shared by all: try to write them every way we know, then look at the host's copy.
  const std::string program = "/bin/sh";
  const std::string before = *ReadFile(program);
  TempDir dir;
  const std::string copy = dir.Write("sh", before, 0755);
  EXPECT_TRUE(Contains(RunOutside({"open-write", copy}).out, "OPEN")) << "NO-CONTROL";
  EXPECT_TRUE(Contains(RunOutside({"setattr", copy}).out, "chmod-setuid: OPEN")) << "NO-CONTROL";
  for (const Strings& verb : {Strings{"open-write", "/bin/sh", "/usr/bin/dash", "/bin/bash"},
                              {"dirty-pipe-shape", "/bin/sh"},
                              {"dirty-cow-shape", "/bin/sh", "1"},
                              {"setattr", "/bin/sh"}}) {
    const RunResult result = RunProbe(Flags(), verb);
    EXPECT_FALSE(result.out.empty()) << "the probe did not run: " << result.Describe();
    if (verb[0] == "open-write" || verb[0] == "setattr") {
      EXPECT_FALSE(Contains(result.out, "OPEN")) << result.Describe();
    }
  }
  EXPECT_EQ(*ReadFile(program), before);
}

INSTANTIATE_TEST_SUITE_P(Level, TenantEscape, ::testing::Values("container", "process"),
                         LevelTestName);

}  // namespace
}  // namespace coffer::test
