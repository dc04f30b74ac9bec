// SPDX-License-Identifier: Apache-2.0
//
// Other processes: tracing, reading their memory, taking their descriptors, signalling them.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "probe.h"

namespace probe {
namespace {

pid_t SleepingChild() {
  const pid_t child = fork();
  if (child == 0) {
    while (true) {
      pause();
    }
  }
  return child;
}

void End(pid_t child) {
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

int PtraceChild(int, char**) {
  const pid_t child = SleepingChild();
  Verdict("seize", Call(SYS_ptrace, PTRACE_SEIZE, child, 0L, 0L));
  End(child);
  const pid_t second = fork();
  if (second == 0) {
    Verdict("traceme", Call(SYS_ptrace, PTRACE_TRACEME, 0, 0L, 0L));
    _exit(0);
  }
  waitpid(second, nullptr, 0);
  return 0;
}

int PtracePid(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    Verdict(argv[i], Call(SYS_ptrace, PTRACE_SEIZE, atoi(argv[i]), 0L, 0L));
  }
  return 0;
}

int VmChild(int, char**) {
  static char word[8] = "abcdefg";
  const pid_t child = SleepingChild();
  char local[8] = {};
  struct iovec mine = {local, sizeof local};
  struct iovec theirs = {word, sizeof word};
  Verdict("readv", Call(SYS_process_vm_readv, child, &mine, 1UL, &theirs, 1UL, 0UL));
  Verdict("writev", Call(SYS_process_vm_writev, child, &mine, 1UL, &theirs, 1UL, 0UL));
  End(child);
  return 0;
}

// `pidfd-getfd PID`: takes descriptor 0 of another process. "child" makes one.
int PidfdGetfd(int argc, char** argv) {
  const bool own = argc < 2 || strcmp(argv[1], "child") == 0;
  const pid_t target = own ? SleepingChild() : atoi(argv[1]);
  const long handle = Call(SYS_pidfd_open, target, 0);
  if (handle < 0) {
    Refused("pidfd_open", errno);
    ReachVerdict("pidfd_getfd", Call(SYS_pidfd_getfd, -1, 0, 0));
  } else {
    ReachVerdict("pidfd_getfd", Call(SYS_pidfd_getfd, handle, 0, 0));
    ReachVerdict("process_madvise",
                 Call(SYS_process_madvise, handle, nullptr, 0UL, 21 /* PAGEOUT */, 0));
  }
  if (own) {
    End(target);
  }
  return 0;
}

// `kill PID SIGNAL`: PID may be -1 or "parent".
int Kill(int argc, char** argv) {
  if (argc < 3) {
    return 2;
  }
  const pid_t target = strcmp(argv[1], "parent") == 0 ? getppid() : atoi(argv[1]);
  Verdict(nullptr, Call(SYS_kill, target, atoi(argv[2])));
  return 0;
}

// `kill-everyone`: each signal that ends or stops, to everything that can be named; then proves that it still runs.
int KillEveryone(int, char**) {
  signal(SIGTERM, SIG_IGN);
  signal(SIGINT, SIG_IGN);
  for (const int number : {SIGTERM, SIGINT, SIGKILL, SIGSTOP, SIGABRT, SIGSEGV}) {
    Call(SYS_kill, -1, number);
    Call(SYS_kill, 1, number);
    Call(SYS_kill, getppid(), number);
    Call(SYS_tgkill, 1, 1, number);
    const long handle = Call(SYS_pidfd_open, 1, 0);
    if (handle >= 0) {
      Call(SYS_pidfd_send_signal, handle, number, 0L, 0);
      close(static_cast<int>(handle));
    }
  }
  Say("still here");
  return 0;
}

// `pids`: what /proc shows, and what kill(pid, 0) can find in the first 100,000.
int Pids(int, char**) {
  int found = 0;
  for (pid_t pid = 1; pid <= 100000; ++pid) {
    if (Call(SYS_kill, pid, 0) == 0 || errno == EPERM) {
      Say("pid %d", pid);
      ++found;
    }
  }
  Say("total %d", found);
  return 0;
}

constexpr Verb kVerbs[] = {
    {"ptrace-child", PtraceChild, ""},
    {"ptrace-pid", PtracePid, "PID..."},
    {"vm-child", VmChild, ""},
    {"pidfd-getfd", PidfdGetfd, "[PID|child]"},
    {"kill", Kill, "PID|parent SIGNAL"},
    {"kill-everyone", KillEveryone, ""},
    {"pids", Pids, ""},
};

}  // namespace

std::span<const Verb> ProcessVerbs() { return kVerbs; }

}  // namespace probe
