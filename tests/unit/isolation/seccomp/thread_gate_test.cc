// SPDX-License-Identifier: Apache-2.0
//
// What the gate lets through: threads within the cap, and nothing else.
#include "isolation/seccomp/thread_gate.h"

#include <sched.h>
#include <signal.h>

#include "seccomp_testing.h"

namespace coffer::isolation {
namespace {

constexpr uint64_t kThread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                             CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID |
                             CLONE_CHILD_CLEARTID;
constexpr uint64_t kNamespaces[] = {CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                                    CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET};

std::string AskClone(uint32_t arch, uint64_t flags, bool gated) {
  const SyscallTable& table = TableFor(arch);
  Profile profile = BuiltinProfile(policy::SyscallProfile::kDefault, {});
  if (gated) {
    AskForThreads(profile);
  }
  const auto program = Compile(profile, table);
  EXPECT_TRUE(program.ok());
  return Verdict(*program, Call(table.audit_arch, *table.Find("clone"), {flags}));
}

seccomp_data CloneHere(uint64_t flags) {
  seccomp_data call{};
  call.nr = SyscallNumber("clone");
  call.args[0] = flags;
  return call;
}

TEST(ThreadGate, TheFilterAsksForThreadsAlone) {
  for (const uint32_t arch : kArches) {
    EXPECT_EQ(AskClone(arch, kThread, false), "allow") << "the control";
    EXPECT_EQ(AskClone(arch, kThread, true), "notify");
    EXPECT_EQ(AskClone(arch, kUpperHalf | kThread, true), "notify");
    EXPECT_EQ(AskClone(arch, SIGCHLD, true), "allow") << "a process";
    EXPECT_EQ(AskClone(arch, CLONE_VM | CLONE_VFORK | SIGCHLD, true), "allow");
  }
}

// A clone that is the gate's goes on in the kernel: it must never be one that makes a namespace.
TEST(ThreadGate, NoNamespaceIsTheGates) {
  EXPECT_TRUE(ThreadGate::Asks(CloneHere(kThread))) << "the control";
  EXPECT_TRUE(ThreadGate::Asks(CloneHere(kUpperHalf | kThread)));
  EXPECT_FALSE(ThreadGate::Asks(CloneHere(SIGCHLD)));
  for (const uint64_t flag : kNamespaces) {
    EXPECT_FALSE(ThreadGate::Asks(CloneHere(kThread | flag))) << std::hex << flag;
    EXPECT_FALSE(ThreadGate::Asks(CloneHere(kUpperHalf | kThread | flag))) << std::hex << flag;
    EXPECT_FALSE(ThreadGate::Asks(CloneHere(flag | SIGCHLD))) << std::hex << flag;
    for (const uint32_t arch : kArches) {
      EXPECT_EQ(AskClone(arch, kThread | flag, true), "notify") << std::hex << flag;
    }
  }
  seccomp_data other = CloneHere(kThread);
  other.nr = SyscallNumber("unshare");
  EXPECT_FALSE(ThreadGate::Asks(other));
}

TEST(ThreadGate, AdmitsUpToTheCapAndCountsWhatItRefuses) {
  uint64_t tasks = 2;  // init and the program
  ThreadGate gate(5, [&] { return tasks; });
  for (; tasks < 5; ++tasks) {
    EXPECT_TRUE(gate.Admit()) << tasks;
  }
  EXPECT_EQ(gate.refused(), 0U) << "all of the cap may be used";
  EXPECT_FALSE(gate.Admit());
  EXPECT_FALSE(gate.Admit());
  EXPECT_EQ(gate.refused(), 2U);
  tasks = 4;  // one has ended
  EXPECT_TRUE(gate.Admit());
  EXPECT_EQ(gate.refused(), 2U);
}

// Counting all processes takes time: it is done only when the cap could have been reached.
TEST(ThreadGate, CountsOnlyWhenItMust) {
  uint64_t tasks = 2;
  ThreadGate gate(100, [&] { return tasks; });
  for (int i = 0; i < 98; ++i, ++tasks) {
    EXPECT_TRUE(gate.Admit());
  }
  EXPECT_EQ(gate.counts(), 1U);
}

// A sample between the answer and the thread that it let through must not make room for one more.
TEST(ThreadGate, AnotherCountMakesNoRoom) {
  ThreadGate gate(5, [] { return 5; });
  gate.Counted(2);
  EXPECT_FALSE(gate.Admit());
  uint64_t tasks = 2;
  ThreadGate other(5, [&] { return tasks; });
  EXPECT_TRUE(other.Admit());
  other.Counted(2);  // it is not there yet
  EXPECT_TRUE(other.Admit());
  EXPECT_TRUE(other.Admit());
  tasks = 5;
  EXPECT_FALSE(other.Admit());
  EXPECT_EQ(other.refused(), 1U);
  // Processes that were made meanwhile count.
  ThreadGate third(5, [&] { return tasks; });
  tasks = 2;
  EXPECT_TRUE(third.Admit());
  tasks = 5;
  third.Counted(5);
  EXPECT_FALSE(third.Admit());
}

}  // namespace
}  // namespace coffer::isolation
