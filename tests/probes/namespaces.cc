// SPDX-License-Identifier: Apache-2.0
//
// New namespaces, other namespaces, other identities.
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "probe.h"

namespace probe {
namespace {

struct Kind {
  const char* name;
  unsigned long flag;
};
constexpr Kind kKinds[] = {
    {"user", CLONE_NEWUSER},     {"mnt", CLONE_NEWNS},
    {"net", CLONE_NEWNET},       {"pid", CLONE_NEWPID},
    {"ipc", CLONE_NEWIPC},       {"uts", CLONE_NEWUTS},
    {"cgroup", CLONE_NEWCGROUP}, {"time", 0x80 /* NEWTIME, 5.6 */},
};

// `unshare KIND`: each in a child, so that one success does not change the next answer.
int Unshare(int argc, char** argv) {
  for (const Kind& kind : kKinds) {
    if (argc > 1 && strcmp(argv[1], kind.name) != 0 && strcmp(argv[1], "all") != 0) {
      continue;
    }
    const pid_t child = fork();
    if (child == 0) {
      Verdict(kind.name, Call(SYS_unshare, kind.flag));
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  }
  return 0;
}

int CloneNewUser(int, char**) {
  const long child = Call(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0L, 0L, 0L, 0L);
  if (child == 0) {
    _exit(0);
  }
  if (Verdict(nullptr, child) > 0) {
    waitpid(static_cast<pid_t>(child), nullptr, 0);
  }
  return 0;
}

// The flags lie behind a pointer, where a filter cannot see them: only a refusal of the whole call is safe.
int Clone3NewUser(int, char**) {
  struct clone_args args = {};
  args.flags = CLONE_NEWUSER;
  args.exit_signal = SIGCHLD;
  const long child = Call(SYS_clone3, &args, sizeof args);
  if (child == 0) {
    _exit(0);
  }
  if (Verdict(nullptr, child) > 0) {
    waitpid(static_cast<pid_t>(child), nullptr, 0);
  }
  return 0;
}

int SetnsAll(int argc, char** argv) {
  const char* pid = argc > 1 ? argv[1] : "1";
  for (const char* name : {"user", "mnt", "net", "pid", "ipc", "uts", "cgroup"}) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%s/ns/%s", pid, name);
    const pid_t child = fork();
    if (child == 0) {
      const int fd = open(path, O_RDONLY | O_CLOEXEC);
      // Without a descriptor the call itself is still tried: the filter must refuse it before it looks.
      if (fd < 0) {
        ReachVerdict(name, Call(SYS_setns, -1, 0));
      } else {
        ReachVerdict(name, Call(SYS_setns, fd, 0));
      }
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  }
  const pid_t child = fork();
  if (child == 0) {
    const long fd = Call(SYS_pidfd_open, atoi(pid), 0);
    ReachVerdict("pidfd", Call(SYS_setns, fd, 0x7e020000 & ~0x10000000));
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  return 0;
}

// Every way to become somebody else or to gain a capability. In children: a success must not colour the next.
int Identity(int, char**) {
  const auto attempt = [](const char* label, auto&& action) {
    const pid_t child = fork();
    if (child == 0) {
      ReachVerdict(label, action());
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  };
  attempt("setuid", [] { return Call(SYS_setuid, 0); });
  attempt("setgid", [] { return Call(SYS_setgid, 0); });
  attempt("setresuid", [] { return Call(SYS_setresuid, 0, 0, 0); });
  attempt("setgroups", [] {
    const gid_t zero = 0;
    return Call(SYS_setgroups, 1, &zero);
  });
  attempt("capset", [] {
    __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2] = {};
    data[0].effective = data[0].permitted = 1U << CAP_SYS_ADMIN;
    return Call(SYS_capset, &header, data);
  });
  attempt("ambient", [] {
    // Outside this needs the capability in the inheritable set as well.
    __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2] = {};
    Call(SYS_capget, &header, data);
    data[0].inheritable = data[0].permitted;
    Call(SYS_capset, &header, data);
    return Call(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0);
  });
  attempt("securebits", [] { return Call(SYS_prctl, PR_SET_SECUREBITS, 0, 0, 0, 0); });
  attempt("clear-nnp", [] { return Call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0); });
  attempt("chroot", [] { return chroot("/proc") == 0 ? 0L : static_cast<long>(chroot("/")); });
  attempt("sethostname", [] {
    char name[256] = {};
    gethostname(name, sizeof name - 1);
    return static_cast<long>(sethostname(name, strlen(name)));  // the same name: harmless outside
  });
  return 0;
}

// `personality`: switch address randomisation off, and READ_IMPLIES_EXEC on.
int Personality(int, char**) {
  Verdict("addr-no-randomize",
          Call(SYS_personality, static_cast<unsigned long>(ADDR_NO_RANDOMIZE)));
  Verdict("read-implies-exec",
          Call(SYS_personality, static_cast<unsigned long>(READ_IMPLIES_EXEC)));
  return 0;
}

constexpr Verb kVerbs[] = {
    {"unshare", Unshare, "[user|mnt|net|pid|ipc|uts|cgroup|time|all]"},
    {"clone-newuser", CloneNewUser, ""},
    {"clone3-newuser", Clone3NewUser, ""},
    {"setns-all", SetnsAll, "[PID]"},
    {"identity", Identity, ""},
    {"personality", Personality, ""},
};

}  // namespace

std::span<const Verb> NamespaceVerbs() { return kVerbs; }

}  // namespace probe
