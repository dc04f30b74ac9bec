// SPDX-License-Identifier: Apache-2.0
#include "isolation/host_support.h"

#include <errno.h>
#include <fmt/format.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/sys.h"
#include "isolation/landlock.h"
#include "isolation/seccomp/waiting_thread.h"

namespace coffer::isolation {
namespace {

using raw::Arg;
using raw::Syscall;

// In a child: can it make a network namespace and a file system? The exit status is the errno, 0 if all went well.
[[noreturn]] void TryNamespaces() {
  long answer = Syscall(SYS_unshare, CLONE_NEWNET);
  if (answer >= 0) {
    answer = Syscall(SYS_fsopen, Arg("tmpfs"), FSOPEN_CLOEXEC);
  }
  if (answer >= 0) {
    answer = Syscall(SYS_fsconfig, answer, FSCONFIG_CMD_CREATE, 0, 0, 0);
  }
  ::_exit(answer < 0 ? static_cast<int>(-answer) : 0);
}

// 0, or the errno that stands in the way.
int TryContainer() {
  clone_args args{};
  args.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS;
  args.exit_signal = SIGCHLD;
  const long pid = Syscall(SYS_clone3, Arg(&args), sizeof(args));
  if (pid == 0) {
    TryNamespaces();
  }
  if (pid < 0) {
    return static_cast<int>(-pid);
  }
  int status = 0;
  while (Syscall(SYS_wait4, pid, Arg(&status), 0, 0) == -EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

std::string Setting(const std::string& path) {
  Result<std::string> text = sys::ReadFile(path, 4096);
  if (!text.ok()) {
    return "";
  }
  while (!text->empty() && text->back() == '\n') {
    text->pop_back();
  }
  return *text;
}

}  // namespace

void ExplainContainer(int error, bool root, const std::string& proc_sys, HostSupport& support) {
  if (error == ENOSYS) {
    support.cause =
        "clone3 is not there: the kernel is older than 5.3, or an outer seccomp filter (Docker's "
        "default) hides it";
    support.fix =
        "in Docker: run the container with --security-opt seccomp=unconfined and --user 1000; "
        "otherwise use a newer kernel";
  } else if (Setting(proc_sys + "/user/max_user_namespaces") == "0") {
    support.cause = "user namespaces are switched off (user.max_user_namespaces = 0)";
    support.fix = "sysctl -w user.max_user_namespaces=15000";
  } else if (!root && Setting(proc_sys + "/kernel/unprivileged_userns_clone") == "0") {
    support.cause = "user namespaces are for root only (kernel.unprivileged_userns_clone = 0)";
    support.fix = "sysctl -w kernel.unprivileged_userns_clone=1, or run coffer as root";
  } else if (!root && Setting(proc_sys + "/kernel/apparmor_restrict_unprivileged_userns") == "1") {
    support.cause =
        "AppArmor forbids user namespaces to unconfined programs (Ubuntu 23.10 and later)";
    support.fix =
        "load coffer's AppArmor profile: cp /usr/share/coffer/apparmor/coffer /etc/apparmor.d/ && "
        "apparmor_parser -r /etc/apparmor.d/coffer (it is for /usr/bin and /usr/local/bin); or "
        "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0";
  } else if (error == EPERM || error == EACCES) {
    support.cause = fmt::format(
        "the host forbids namespaces ({}): an outer container, seccomp filter or security module",
        sys::ErrnoText(error));
    support.fix =
        "in Docker or Kubernetes: allow user namespaces to this container (OPERATIONS.md in "
        "/usr/share/doc/coffer)";
  } else if (error == ENOSPC || error == EUSERS) {
    support.cause = "there are too many user namespaces already, or they are nested too deep";
    support.fix = "raise user.max_user_namespaces, or leave the outer sandbox";
  } else {
    support.cause = fmt::format("namespaces cannot be made: {}", sys::ErrnoText(error));
  }
}

HostSupport ProbeHost() {
  HostSupport support;
  utsname name{};
  if (::uname(&name) == 0) {
    support.kernel = name.release;
    support.machine = name.machine;
  }
  support.landlock_abi = std::max(LandlockAbi(), 0);
  uint32_t action = SECCOMP_RET_USER_NOTIF;
  support.seccomp_notify = Syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, Arg(&action)) == 0;
  action = SECCOMP_RET_ERRNO;
  support.seccomp = Syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, Arg(&action)) == 0;
  support.duplicates = CanDuplicateDescriptors();
  const int error = TryContainer();
  support.containers = error == 0;
  support.cgroup_clone = error != ENOSYS;
  if (error != 0) {
    ExplainContainer(error, ::geteuid() == 0, "/proc/sys", support);
  }
  return support;
}

}  // namespace coffer::isolation
