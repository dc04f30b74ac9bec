// SPDX-License-Identifier: Apache-2.0
#include "isolation/seccomp/role_profiles.h"

#include <errno.h>
#include <sys/socket.h>

#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace coffer::isolation {

Profile RoleProfile(RoleKind kind) {
  Profile profile;
  if (kind == RoleKind::kWarden) {
    // Whatever it runs inherits this, so it refuses only what no process below may ever do.
    profile.fallback = kAllow;
    profile.beyond = kAllow;
    for (const char* never : {"kexec_load",
                              "kexec_file_load",
                              "init_module",
                              "finit_module",
                              "delete_module",
                              "reboot",
                              "swapon",
                              "swapoff",
                              "acct",
                              "quotactl",
                              "quotactl_fd",
                              "bpf",
                              "perf_event_open",
                              "ptrace",
                              "process_vm_readv",
                              "process_vm_writev",
                              "userfaultfd",
                              "iopl",
                              "ioperm",
                              "lookup_dcookie",
                              "settimeofday",
                              "clock_settime",
                              "clock_adjtime",
                              "adjtimex",
                              "open_by_handle_at",
                              "io_uring_setup",
                              "io_uring_enter",
                              "io_uring_register",
                              "add_key",
                              "request_key",
                              "vhangup",
                              "nfsservctl",
                              "fanotify_init"}) {
      profile.rules.push_back({never, FailWith(EPERM), {}});
    }
    return profile;
  }
  const bool gateway = kind == RoleKind::kGateway;
  profile =
      BuiltinProfile(policy::SyscallProfile::kDefault, {kind != RoleKind::kCompiler, gateway});
  // New programs are not for these roles, nor is listening: what the gateway listens on was made before. The gateway
  // reaches no host by itself; the egress role dials, TCP and what resolving names needs, and changes no file.
  std::vector<std::string> needed;
  std::vector<std::string> refused = {"execve", "execveat", "bind",  "listen",
                                      "accept", "accept4",  "ptrace"};
  if (gateway) {
    refused = {"execve", "execveat", "socket", "bind", "listen", "ptrace", "connect"};
    // sched_setattr is for the thread that answers probes; no privilege goes with it here.
    needed = {"openat2", "renameat2", "sched_getattr", "sched_setattr"};
  } else {
    if (kind == RoleKind::kCallEgress) {
      std::erase(refused, "accept4");  // on the listener that it is sent; it cannot make one
    }
    if (kind == RoleKind::kCompiler) {
      refused.insert(refused.end(), {"socket", "socketpair", "connect"});
      needed = {"openat2"};
    }
    for (const char* change :
         {"rename",    "renameat", "renameat2", "link",      "linkat",   "symlink",
          "symlinkat", "unlink",   "unlinkat",  "mkdir",     "mkdirat",  "rmdir",
          "truncate",  "creat",    "mknod",     "mknodat",   "fchmodat", "chmod",
          "fchownat",  "chown",    "lchown",    "utimensat", "kill",     "tkill"}) {
      refused.emplace_back(change);
    }
  }
  // In front of the profile's own rules: the first one that matches decides.
  std::vector<Rule> rules;
  rules.reserve(1 + refused.size() + needed.size() + profile.rules.size());
  // Payloads may ask about the routes of their own network; here that would be the host's.
  rules.push_back(
      {"socket", FailWith(EAFNOSUPPORT), {{0, Compare::kEqual, AF_NETLINK, 0xffffffff}}});
  for (std::string& name : refused) {
    rules.push_back({std::move(name), FailWith(EPERM), {}});
  }
  for (std::string& name : needed) {
    rules.push_back({std::move(name), kAllow, {}});
  }
  std::move(profile.rules.begin(), profile.rules.end(), std::back_inserter(rules));
  profile.rules = std::move(rules);
  return profile;
}

}  // namespace coffer::isolation
