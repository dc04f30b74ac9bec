// SPDX-License-Identifier: Apache-2.0
#include "isolation/child/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/if.h>
#include <linux/keyctl.h>
#include <linux/prctl.h>
#include <linux/securebits.h>
#include <linux/sockios.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <iterator>

#include "base/sys.h"

namespace coffer::isolation {
namespace {

using raw::Arg;
using raw::Syscall;

long Prctl(int option, unsigned long a = 0, unsigned long b = 0) {
  return Syscall(SYS_prctl, option, static_cast<long>(a), static_cast<long>(b), 0, 0);
}

}  // namespace

void MakeNetwork(int32_t* network, int32_t* socket) {
  long answer = Syscall(SYS_unshare, CLONE_NEWNET);
  if (answer >= 0) {
    answer = Syscall(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    *socket = static_cast<int32_t>(answer);
  }
  if (answer >= 0) {
    // SIOCGSKNS (Linux 4.9): the namespace of a socket, as a descriptor. Init enters it by that,
    // without a path in /proc.
    answer = Syscall(SYS_ioctl, answer, SIOCGSKNS, 0);
  }
  *network = static_cast<int32_t>(answer);
}

// The kernel raises the device of the namespace that the socket belongs to, so the caller need not
// enter it.
long RaiseLoopback(int socket) {
  ifreq request{};
  request.ifr_name[0] = 'l';
  request.ifr_name[1] = 'o';
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  return Syscall(SYS_ioctl, socket, SIOCSIFFLAGS, Arg(&request));
}

long EnforceIdentity(uint32_t uid, bool groups_allowed) {
  // Leaving uid 0 would empty the sets we still have to empty properly (the bounding set needs CAP_SETPCAP).
  long answer = Prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP);
  // Where an ordinary user made the user namespace, setgroups is denied in it for good
  // (user_namespaces(7)): the groups of the caller stay.
  if (answer >= 0 && groups_allowed) {
    answer = Syscall(SYS_setgroups, 0, 0);
  }
  if (answer >= 0) {
    answer = Syscall(SYS_setresgid, uid, uid, uid);
  }
  if (answer >= 0) {
    answer = Syscall(SYS_setresuid, uid, uid, uid);
  }
  return answer;
}

bool EnforceCounters() {
  struct Counter {
    const char* path;
    const char* most;
  };
  // The boundary is in one namespace of each kind, all made by its own user: one is the count it already has. Only of
  // mount namespaces it needs more while it is built: each detached mount counts as one.
  static constexpr Counter kCounters[] = {
      {"/proc/sys/user/max_inotify_instances", "64"},
      {"/proc/sys/user/max_inotify_watches", "16384"},
      {"/proc/sys/user/max_fanotify_groups", "0"},
      {"/proc/sys/user/max_fanotify_marks", "0"},
      {"/proc/sys/user/max_user_namespaces", "0"},
      {"/proc/sys/user/max_time_namespaces", "1"},
      {"/proc/sys/user/max_mnt_namespaces", "1024"},
      {"/proc/sys/user/max_pid_namespaces", "1"},
      {"/proc/sys/user/max_net_namespaces", "1"},
      {"/proc/sys/user/max_ipc_namespaces", "1"},
      {"/proc/sys/user/max_uts_namespaces", "1"},
      {"/proc/sys/user/max_cgroup_namespaces", "1"},
  };
  bool all = true;
  for (const Counter& counter : kCounters) {
    const long fd = Syscall(SYS_openat, AT_FDCWD, Arg(counter.path), O_WRONLY | O_CLOEXEC);
    if (fd == -ENOENT) {
      continue;  // this kernel has no such counter
    }
    const long wrote =
        fd < 0 ? fd
               : Syscall(SYS_write, fd, Arg(counter.most), static_cast<long>(strlen(counter.most)));
    all = all && wrote > 0;
    if (fd >= 0) {
      ::close(static_cast<int>(fd));
    }
  }
  return all;
}

// A single-threaded process that writes "0" to its own `tasks` file does not take the slow lock (ADR 3).
long JoinCgroups(const BoundaryAdmission& admission, uint32_t* item) {
  for (uint32_t i = 0; i < admission.tasks_count && i < 8; ++i) {
    *item = i;
    const long answer = Syscall(SYS_write, admission.tasks[i], Arg("0"), 1);
    if (answer < 0) {
      return answer;
    }
  }
  return 0;
}

long EnforceRlimits(const BoundaryAdmission& admission, uint32_t* item) {
  for (uint32_t i = 0; i < admission.rlimit_count && i < std::size(admission.rlimits); ++i) {
    *item = i;
    const auto& wanted = admission.rlimits[i];
#ifdef COFFER_SANITIZED
    if (wanted.resource == RLIMIT_DATA) {
      continue;  // the sanitizer's own memory counts, and is terabytes
    }
#endif
    rlimit64 limit{wanted.soft, wanted.hard};
    long answer = Syscall(SYS_prlimit64, 0, wanted.resource, Arg(&limit), 0);
    if (answer == -EPERM) {
      // The host allows less than the plan wants: its own, smaller limit stays.
      rlimit64 current{};
      answer = Syscall(SYS_prlimit64, 0, wanted.resource, 0, Arg(&current));
      limit.rlim_max = limit.rlim_max < current.rlim_max ? limit.rlim_max : current.rlim_max;
      limit.rlim_cur = limit.rlim_cur < limit.rlim_max ? limit.rlim_cur : limit.rlim_max;
      if (answer >= 0) {
        answer = Syscall(SYS_prlimit64, 0, wanted.resource, Arg(&limit), 0);
      }
    }
    if (answer < 0) {
      return answer;
    }
  }
  return 0;
}

long EnforceCoreLimit() {
  rlimit64 limit{1, 1};
  long answer = Syscall(SYS_prlimit64, 0, RLIMIT_CORE, Arg(&limit), 0);
  if (answer == -EPERM) {
    limit = {0, 0};
    answer = Syscall(SYS_prlimit64, 0, RLIMIT_CORE, Arg(&limit), 0);
  }
  return answer;
}

long DetachKeyring() {
  const long answer = Syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, 0);
  if (answer == -ENOSYS || answer >= 0) {
    return 0;  // a kernel without keys has none to leak
  }
  // An outer filter (Docker's) that refuses every use of keys refuses the payload's as well.
  const bool no_use = answer == -EPERM && Syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID,
                                                  KEY_SPEC_SESSION_KEYRING, 0) == -EPERM;
  return no_use ? 0 : answer;
}

long EnforceNoGain() {
  // The running kernel may know capabilities that the headers of the build did not. A set has 64
  // bits.
  for (int capability = 0; capability <= CAP_LAST_CAP + 24; ++capability) {
    const long answer = Prctl(PR_CAPBSET_DROP, static_cast<unsigned long>(capability));
    if (answer == -EINVAL) {
      break;  // past the last capability this kernel knows
    }
    if (answer < 0) {
      return answer;
    }
  }
  const long answer = Prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL);
  if (answer < 0) {
    return answer;
  }
  // With these bits execve gives uid 0 and set-user-ID programs no capability (capabilities(7)).
  // They are locked, so nothing inside can clear them.
  return Prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                                      SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                                      SECBIT_NO_CAP_AMBIENT_RAISE |
                                      SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED);
}

long EnforceNoCapabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2]{};
  return Syscall(SYS_capset, Arg(&header), Arg(none));
}

long EnforceNoNewPrivs() { return Prctl(PR_SET_NO_NEW_PRIVS, 1); }

long EnforceInitPosture() {
  // Dumpable only until the call starts, so that a supervisor without privilege can look at the parked boundary
  // from outside; nothing else runs in it yet.
  long answer = Prctl(PR_SET_DUMPABLE, 1);
  if (answer >= 0) {
    // The caller's flags would be inherited: ADDR_NO_RANDOMIZE and READ_IMPLIES_EXEC make an attack
    // easier (personality(2)).
    answer = Syscall(SYS_personality, PER_LINUX);
  }
  if (answer >= 0) {
    answer = Prctl(PR_SET_NAME, reinterpret_cast<unsigned long>("init"));
  }
  if (answer >= 0) {
    // Last: a change of identity clears it. What died before is noticed on the control socket.
    answer = Prctl(PR_SET_PDEATHSIG, SIGKILL);
  }
  return answer < 0 ? answer : 0;
}

long EnforceNotDumpable() { return Prctl(PR_SET_DUMPABLE, 0); }

long ProbeLandlock(const char* canary) {
  const long fd = Syscall(SYS_openat, AT_FDCWD, Arg(canary), O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    ::close(static_cast<int>(fd));
    return 0;
  }
  // The canary's mode lets every user read it, so EACCES is the answer of Landlock.
  return fd == -EACCES ? 1 : 0;
}

}  // namespace coffer::isolation
