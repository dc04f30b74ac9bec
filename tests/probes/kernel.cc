// SPDX-License-Identifier: Apache-2.0
//
// Kernel interfaces that untrusted code has no business with.
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "probe.h"

namespace probe {
namespace {

int IoUring(int, char**) {
  struct io_uring_params params = {};
  const long ring = Verdict("io_uring_setup", Call(SYS_io_uring_setup, 4, &params));
  ReachVerdict("io_uring_enter", Call(SYS_io_uring_enter, ring, 0, 0, 0, 0L, 0));
  ReachVerdict("io_uring_register", Call(SYS_io_uring_register, ring, 0, 0L, 0));
  return 0;
}

int Bpf(int, char**) {
  union bpf_attr attr = {};
  attr.map_type = BPF_MAP_TYPE_ARRAY;
  attr.key_size = 4;
  attr.value_size = 8;
  attr.max_entries = 1;
  Verdict(nullptr, Call(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr));
  return 0;
}

int Perf(int, char**) {
  struct perf_event_attr attr = {};
  attr.type = PERF_TYPE_SOFTWARE;
  attr.size = sizeof attr;
  attr.config = PERF_COUNT_SW_TASK_CLOCK;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  Verdict(nullptr, Call(SYS_perf_event_open, &attr, 0, -1, -1, 0UL));
  return 0;
}

int Userfaultfd(int, char**) {
  Verdict(nullptr, Call(SYS_userfaultfd, O_CLOEXEC | 1 /* UFFD_USER_MODE_ONLY, 5.11 */));
  return 0;
}

// `keys [NAME]`: adds a key to the user keyring and looks for NAME there and in the session keyring.
int Keys(int argc, char** argv) {
  const char* name = argc > 1 ? argv[1] : "coffer-probe";
  Verdict("add_key",
          Call(SYS_add_key, "user", "coffer-probe-own", "x", 1UL, KEY_SPEC_PROCESS_KEYRING));
  const auto search = [&](const char* label, int ring) {
    const long found = Call(SYS_keyctl, KEYCTL_SEARCH, ring, "user", name, 0);
    if (found >= 0) {
      Open(label, "key %ld", found);
    } else if (errno == ENOKEY) {
      Say("%s: NOTFOUND", label);
    } else {
      Refused(label, errno);
    }
  };
  search("search-user", KEY_SPEC_USER_KEYRING);
  search("search-user-session", KEY_SPEC_USER_SESSION_KEYRING);
  search("search-session", KEY_SPEC_SESSION_KEYRING);
  Verdict("describe", Call(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 1));
  const long requested = Call(SYS_request_key, "user", name, nullptr, 0);
  if (requested < 0 && errno == ENOKEY) {
    Say("request_key: NOTFOUND");
  } else {
    Verdict("request_key", requested);
  }
  return 0;
}

// Calls that change the machine. The arguments are nonsense on purpose: outside, as root, nothing may happen.
int Machine(int, char**) {
  const auto bad = reinterpret_cast<const char*>(8);
  ReachVerdict("init_module", Call(SYS_init_module, bad, 1UL, bad));
  ReachVerdict("finit_module", Call(SYS_finit_module, -1, bad, 0));
  ReachVerdict("delete_module", Call(SYS_delete_module, bad, 0));
  ReachVerdict("kexec_load", Call(SYS_kexec_load, 0UL, 99UL, bad, ~0UL));
  ReachVerdict("kexec_file_load", Call(SYS_kexec_file_load, -1, -1, 0UL, bad, ~0UL));
  ReachVerdict("swapon", Call(SYS_swapon, bad, 0));
  ReachVerdict("swapoff", Call(SYS_swapoff, bad));
  ReachVerdict("reboot", Call(SYS_reboot, 1, 2, 3, nullptr));
  ReachVerdict("acct", Call(SYS_acct, bad));
  ReachVerdict("clock_settime", Call(SYS_clock_settime, CLOCK_REALTIME, bad));
  ReachVerdict("settimeofday", Call(SYS_settimeofday, bad, nullptr));
  ReachVerdict("quotactl", Call(SYS_quotactl, -1, bad, 0, nullptr));
  ReachVerdict("syslog", Call(SYS_syslog, 10 /* SIZE_BUFFER */, nullptr, 0));
  ReachVerdict("setdomainname", Call(SYS_setdomainname, bad, -1));
  return 0;
}

// `seccomp-loosen`: a filter may be added, but it may never widen what the first one refuses.
int SeccompLoosen(int, char**) {
  struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog program = {1, allow};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const long added = Call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
  Say("add-filter %s", added == 0 ? "yes" : "no");
  const pid_t child = fork();
  if (child == 0) {
    Verdict("unshare-after", Call(SYS_unshare, CLONE_NEWUSER));
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  Verdict("listener",
          Call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
  return 0;
}

// `sweep-syscalls [FIRST LAST]`: which system calls get past the filter? Every argument is -1, so that none can do
// harm outside; each runs in a child of its own. Prints "reached N" for each that was not refused.
int SweepSyscalls(int argc, char** argv) {
  const int first = argc > 1 ? atoi(argv[1]) : 0;
  const int last = argc > 2 ? atoi(argv[2]) : 512;
  int reached = 0;
  int blocked = 0;
  for (int number = first; number <= last; ++number) {
    if (number == SYS_vhangup) {
      continue;  // takes no arguments: outside it would cut off the terminal
    }
    int result_pipe[2];
    if (pipe(result_pipe) != 0) {
      return 3;
    }
    const pid_t child = fork();
    if (child < 0) {
      Refused("fork", errno);
      return 3;
    }
    if (child == 0) {
      close(result_pipe[0]);
      signal(SIGALRM, SIG_DFL);
      alarm(2);
      const pid_t self = getpid();
      errno = 0;
      const long answer = Call(number, -1L, -1L, -1L, -1L, -1L, -1L);
      if (getpid() != self) {
        _exit(0);  // a fork got through; the parent reports
      }
      const int error_number = answer < 0 ? errno : 0;
      const char verdict = (error_number == EPERM || error_number == ENOSYS) ? 'b' : 'r';
      if (write(result_pipe[1], &verdict, 1) != 1) {
        _exit(1);
      }
      _exit(0);
    }
    close(result_pipe[1]);
    char verdict = 'r';  // died without an answer: exit, sigreturn, ... did run
    const ssize_t got = read(result_pipe[0], &verdict, 1);
    close(result_pipe[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (got <= 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) {
      verdict = 'b';
    }
    if (verdict == 'r') {
      Say("reached %d", number);
      ++reached;
    } else {
      ++blocked;
    }
  }
  Say("total reached %d blocked %d", reached, blocked);
  return 0;
}

constexpr Verb kVerbs[] = {
    {"io_uring", IoUring, ""},
    {"bpf", Bpf, ""},
    {"perf", Perf, ""},
    {"userfaultfd", Userfaultfd, ""},
    {"keys", Keys, "[NAME]"},
    {"machine", Machine, ""},
    {"seccomp-loosen", SeccompLoosen, ""},
    {"sweep-syscalls", SweepSyscalls, "[FIRST LAST]"},
};

}  // namespace

std::span<const Verb> KernelVerbs() { return kVerbs; }

}  // namespace probe
