// SPDX-License-Identifier: Apache-2.0
#include "cli/verb_inside_relay.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>

#include "base/exit_codes.h"
#include "base/print.h"
#include "base/sys.h"
#include "call/host_budget.h"
#include "cli/inside_control.h"
#include "cli/inside_server.h"
#include "cli/relay_calls.h"
#include "isolation/seccomp/compile.h"
#include "isolation/seccomp/install.h"
#include "isolation/seccomp/profile.h"

namespace coffer::cli {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr uint64_t kMostRelayFiles = 64;

Status MustDrop(const char* what, long answer) {
  return answer < 0 ? Status(sys::ErrnoError("isolation.tools", what, answer)) : Status();
}

// What is left: reading, writing and accepting on what is open, memory without code, time, the end.
isolation::Profile RelayFilter() {
  isolation::Profile profile;
  profile.fallback = isolation::FailWith(EPERM);
  profile.beyond = isolation::FailWith(ENOSYS);
  for (const char* allowed : {"read",
                              "write",
                              "readv",
                              "writev",
                              "recvfrom",
                              "recvmsg",
                              "sendto",
                              "sendmsg",
                              "shutdown",
                              "accept4",
                              "poll",
                              "ppoll",
                              "close",
                              "fcntl",
                              "getpid",
                              "brk",
                              "munmap",
                              "mremap",
                              "madvise",
                              "futex",
                              "clock_gettime",
                              "gettimeofday",
                              "clock_nanosleep",
                              "rt_sigprocmask",
                              "rt_sigreturn",
                              "gettid",
                              "exit",
                              "exit_group",
                              "restart_syscall",
                              "getrandom",
                              "sched_yield",
                              "set_robust_list",
                              "rseq",
                              "getsockopt"}) {
    profile.rules.push_back({allowed, isolation::kAllow, {}});
  }
  profile.rules.push_back({"ioctl",
                           isolation::kAllow,
                           {{1, isolation::Compare::kEqual, FIONREAD, isolation::kLowHalf}}});
  constexpr uint64_t kExecutable = PROT_EXEC;
  for (const char* mapping : {"mmap", "mprotect"}) {
    profile.rules.push_back(
        {mapping, isolation::kAllow, {{2, isolation::Compare::kEqual, 0, kExecutable}}});
  }
  return profile;
}

Status Bound(int resource, uint64_t most) {
  const rlimit limit{most, most};
  return MustDrop("cannot bound the relay", Syscall(SYS_prlimit64, 0, resource, Arg(&limit), 0));
}

// There is no way back.
Status DropRights(uid_t uid) {
  if (::geteuid() == 0) {
    for (int capability = 0; capability <= CAP_LAST_CAP + 24; ++capability) {
      if (Syscall(SYS_prctl, PR_CAPBSET_DROP, capability, 0, 0, 0) < 0) {
        break;  // past the last one
      }
    }
    TRY(MustDrop("cannot leave the groups", Syscall(SYS_setgroups, 0, 0)));
    TRY(MustDrop("cannot leave the group", Syscall(SYS_setresgid, uid, uid, uid)));
    TRY(MustDrop("cannot leave the user", Syscall(SYS_setresuid, uid, uid, uid)));
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2]{};
  TRY(MustDrop("cannot drop the capabilities", Syscall(SYS_capset, Arg(&header), Arg(none))));
  TRY(MustDrop("cannot stop being dumpable", Syscall(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0)));
  // Also one that was broken into, or stopped, ends with its runner. The changes of uid before this
  // would have cleared it.
  TRY(MustDrop("cannot end with the runner",
               Syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)));
  TRY(Bound(RLIMIT_NOFILE, kMostRelayFiles));
  TRY(Bound(RLIMIT_CORE, 0));
#ifndef COFFER_SANITIZED  // a sanitizer's shadow is larger
  TRY(Bound(RLIMIT_DATA, call::kRelayMemory));
#endif
  TRY(MustDrop("cannot set no_new_privs", Syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)));
  TRY_ASSIGN(const std::vector<sock_filter> filter,
             isolation::Compile(RelayFilter(), isolation::NativeSyscalls()));
  return MustDrop("cannot install the relay's filter", isolation::InstallFilterUnrecorded(filter));
}

Result<bool> ServeRelay(uid_t uid) {
  ::signal(SIGPIPE, SIG_IGN);
  TRY(DropRights(uid));
  TRY(SayInsideReady());
  TRY_ASSIGN(UniqueFd listener, ReceiveInsideListener());
  RelayCalls calls{UniqueFd(kInsideSecond)};
  return !listener || !calls.AwaitTools(kInsideControl) ||
         InsideServer(calls, std::move(listener)).Serve(kInsideControl, -1);
}

}  // namespace

int InsideRelayVerb(std::span<const std::string_view> words) {
  uid_t uid = 0;
  const std::string_view text = words.size() == 1 ? words[0] : std::string_view();
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), uid);
  if (text.empty() || problem != std::errc() || end != text.data() + text.size() || uid == 0 ||
      !TakeInsidePlaces()) {
    PrintError(Refused("policy.usage", "the daemon starts this, and nothing else does"));
    return kExitRefused;
  }
  const Result<bool> served = ServeRelay(uid);
  if (!served.ok()) {
    SayInsideFailed(served.error());
    return kExitFailed;
  }
  return 0;
}

}  // namespace coffer::cli
