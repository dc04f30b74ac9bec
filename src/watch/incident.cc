// SPDX-License-Identifier: Apache-2.0
#include "watch/incident.h"

#include <fmt/format.h>

namespace coffer::watch {
namespace {

struct Kind {
  std::string_view name;
  std::string_view syscalls;  // separated by spaces, one at each end
};

constexpr Kind kKinds[] = {
    // clone is denied only with flags for new namespaces.
    {"namespace", " unshare setns clone pivot_root chroot "},
    {"mount",
     " mount umount2 fsopen fsconfig fsmount fspick open_tree open_tree_attr move_mount "
     "mount_setattr open_by_handle_at mknod mknodat "},
    {"process", " ptrace process_vm_readv process_vm_writev process_madvise pidfd_getfd kcmp "},
    {"kernel",
     " bpf perf_event_open userfaultfd init_module finit_module delete_module kexec_load "
     "kexec_file_load iopl ioperm modify_ldt reboot swapon swapoff acct settimeofday clock_settime "
     "adjtimex clock_adjtime "},
    {"keyring", " keyctl add_key request_key "},
};

}  // namespace

std::optional<std::string_view> FindIncident(std::string_view denied_syscall) {
  if (denied_syscall.empty() || denied_syscall.find(' ') != std::string_view::npos) {
    return std::nullopt;
  }
  for (const Kind& kind : kKinds) {
    for (size_t at = kind.syscalls.find(denied_syscall); at != std::string_view::npos;
         at = kind.syscalls.find(denied_syscall, at + 1)) {
      if (kind.syscalls[at - 1] == ' ' && kind.syscalls[at + denied_syscall.size()] == ' ') {
        return kind.name;
      }
    }
  }
  return std::nullopt;
}

std::vector<std::string> DescribeIncidents(
    const std::vector<std::pair<std::string, uint64_t>>& denied_syscalls) {
  std::vector<std::string> sentences;
  for (const auto& [name, count] : denied_syscalls) {
    if (const std::optional<std::string_view> kind = FindIncident(name)) {
      sentences.push_back(fmt::format("{}: {} was tried {} and denied", *kind, name,
                                      count == 1 ? "once" : fmt::format("{} times", count)));
    }
  }
  return sentences;
}

}  // namespace coffer::watch
