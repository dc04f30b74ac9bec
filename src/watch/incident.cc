// SPDX-License-Identifier: Apache-2.0
#include "watch/incident.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "policy/address_class.h"

namespace coffer::watch {
namespace {

using policy::AddressClass;
using policy::IpAddress;

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

constexpr std::string_view kDestinations[] = {"metadata", "link_local", "internal"};
constexpr std::string_view kDestinationRule = "egress.";

std::string Times(uint64_t count) { return count == 1 ? "once" : fmt::format("{} times", count); }

// By whatever name.
std::optional<std::string_view> KindOfAddress(const IpAddress& address) {
  const IpAddress plain = policy::Unmapped(address);
  const std::optional<policy::AddressBlock> block = policy::BlockOf(plain);
  if (!block) {
    return std::nullopt;
  }
  switch (block->kind) {
    case AddressClass::kMetadata:
      return "metadata";
    case AddressClass::kLinkLocal:
      return "link_local";
    case AddressClass::kTranslated: {
      const std::optional<IpAddress> inner = policy::AddressInside(plain);
      return inner ? KindOfAddress(*inner) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

// Whether no name of the internet has reason to lead there: networks of the operator, and what is public by its number but
// was refused, which is this host's own.
bool IsInternal(const IpAddress& address) {
  const IpAddress plain = policy::Unmapped(address);
  const std::optional<policy::AddressBlock> block = policy::BlockOf(plain);
  if (!block) {
    return true;
  }
  switch (block->kind) {
    case AddressClass::kLoopback:
    case AddressClass::kPrivate:
    case AddressClass::kShared:
    case AddressClass::kUnspecified:  // which the kernel takes for this host
      return true;
    case AddressClass::kTranslated: {
      const std::optional<IpAddress> inner = policy::AddressInside(plain);
      return inner && policy::BlockOf(*inner) && IsInternal(*inner);
    }
    default:
      return false;
  }
}

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
      sentences.push_back(fmt::format("{}: {} was tried {} and denied", *kind, name, Times(count)));
    }
  }
  return sentences;
}

std::optional<std::string_view> FindDestination(std::string_view host, std::string_view leads_to) {
  if (policy::IsMetadataName(host)) {
    return "metadata";
  }
  if (const std::optional<IpAddress> written = IpAddress::Parse(host)) {
    return KindOfAddress(*written);
  }
  const std::optional<IpAddress> address = IpAddress::Parse(leads_to);
  if (!address) {
    return std::nullopt;
  }
  const std::optional<std::string_view> kind = KindOfAddress(*address);
  return !kind && IsInternal(*address) ? "internal" : kind;
}

std::string RuleOfDestination(std::string_view kind) {
  return fmt::format("{}{}", kDestinationRule, kind);
}

std::optional<std::string_view> DestinationOfRule(std::string_view rule) {
  if (!rule.starts_with(kDestinationRule)) {
    return std::nullopt;
  }
  const auto* const kind = std::find(std::begin(kDestinations), std::end(kDestinations),
                                     rule.substr(kDestinationRule.size()));
  return kind == std::end(kDestinations) ? std::nullopt : std::optional(*kind);
}

std::string DescribeLeaks(uint64_t requests) {
  if (requests == 0) {
    return "";
  }
  return fmt::format("{}: {} that held a value which must never leave {} stopped", kLeakKind,
                     requests == 1 ? "a request" : fmt::format("{} requests", requests),
                     requests == 1 ? "was" : "were");
}

std::vector<std::string> DescribeDestinations(std::span<const RefusedDestination> refused) {
  std::vector<std::string> sentences;
  for (const std::string_view kind : kDestinations) {
    std::string_view first;
    uint64_t others = 0;
    uint64_t tries = 0;
    for (const RefusedDestination& one : refused) {
      if (one.kind == kind) {
        others += tries == 0 || one.target == first ? 0 : 1;
        first = tries == 0 ? one.target : first;
        tries += one.count;
      }
    }
    if (tries > 0) {
      sentences.push_back(
          others == 0 ? fmt::format("{}: {} was tried {} and refused", kind, first, Times(tries))
                      : fmt::format("{}: {} and {} {} were tried {} and refused", kind, first,
                                    others, others == 1 ? "other" : "others", Times(tries)));
    }
  }
  return sentences;
}

}  // namespace coffer::watch
