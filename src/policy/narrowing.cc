// SPDX-License-Identifier: Apache-2.0
#include "policy/narrowing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace coffer::policy {
namespace {

bool Within(std::string_view path, std::string_view tree) {
  return path == tree || tree == "/" ||
         (path.size() > tree.size() && path.starts_with(tree) && path[tree.size()] == '/');
}

// Process < auto < container: auto may end as either.
int Strength(Level level) {
  switch (level) {
    case Level::kProcess:
      return 0;
    case Level::kAuto:
      return 1;
    case Level::kContainer:
      break;
  }
  return 2;
}

template <typename T>
struct Cap {
  std::string_view name;
  T Limits::* member;
};

constexpr std::array<Cap<Nanos>, 2> kTimes = {{{"cpu", &Limits::cpu}, {"wall", &Limits::wall}}};
constexpr std::array<Cap<uint64_t>, 8> kSizes = {{{"memory", &Limits::memory},
                                                  {"processes", &Limits::processes},
                                                  {"open_files", &Limits::open_files},
                                                  {"disk", &Limits::disk},
                                                  {"inodes", &Limits::inodes},
                                                  {"io", &Limits::io},
                                                  {"output", &Limits::output},
                                                  {"tmp", &Limits::tmp}}};

bool Imported(const Envelope& envelope) { return envelope.syscalls == SyscallProfile::kImported; }

// The part of `child`'s mount that `parent` also shows, in the child's arrangement.
std::optional<Mount> Common(const Mount& parent, const Mount& child) {
  Mount common = child;
  if (Within(child.host, parent.host)) {
    // the child's is the smaller one
  } else if (Within(parent.host, child.host)) {
    const std::string_view rest =
        std::string_view(parent.host).substr(child.host == "/" ? 0 : child.host.size());
    common.host = parent.host;
    // An empty `at` shows a path under its own name.
    common.at = child.at.empty() ? "" : (child.at == "/" ? "" : child.at) + std::string(rest);
  } else {
    return std::nullopt;
  }
  common.access = std::min(parent.access, child.access);
  common.dangerous = parent.dangerous && child.dangerous;
  common.system = parent.system && child.system;
  return common;
}

std::vector<Mount> CommonMounts(const Envelope& parent, const Envelope& child) {
  std::vector<Mount> mounts;
  for (const Mount& inner : child.mounts) {
    // Within one mount of the child, the widest of the parent's that holds all of it, or else the parts.
    std::vector<Mount> parts;
    for (const Mount& outer : parent.mounts) {
      if (auto part = Common(outer, inner)) {
        parts.push_back(std::move(*part));
      }
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      const bool hidden = std::any_of(parts.begin(), parts.end(), [&](const Mount& other) {
        if (&other == &parts[i] || !Within(parts[i].host, other.host)) {
          return false;
        }
        const bool better = other.access > parts[i].access;
        const bool same = other.access == parts[i].access;
        return better || (same && (other.host != parts[i].host || &other < &parts[i]));
      });
      if (!hidden) {
        mounts.push_back(parts[i]);
      }
    }
  }
  return mounts;
}

bool HasRuntime(const Envelope& envelope, const std::string& runtime) {
  return envelope.runtimes.empty() ||
         std::find(envelope.runtimes.begin(), envelope.runtimes.end(), runtime) !=
             envelope.runtimes.end() ||
         std::find(envelope.optional_runtimes.begin(), envelope.optional_runtimes.end(), runtime) !=
             envelope.optional_runtimes.end();
}

Result<std::vector<std::string>> CommonRuntimes(const Envelope& parent, const Envelope& child) {
  if (parent.runtimes.empty()) {
    return child.runtimes;
  }
  if (child.runtimes.empty()) {
    return parent.runtimes;
  }
  std::vector<std::string> both;
  for (const std::string& runtime : child.runtimes) {
    if (HasRuntime(parent, runtime)) {
      both.push_back(runtime);
    }
  }
  if (both.empty()) {
    return Refused("policy.narrow",
                   fmt::format("the calling tool may not run {}",
                               Printable(fmt::format("{}", fmt::join(child.runtimes, ", ")))),
                   "a call from a tool has at most that tool's permissions");
  }
  return both;
}

bool Readable(const Envelope& envelope, const std::string& path) {
  return std::find(envelope.inputs.begin(), envelope.inputs.end(), path) != envelope.inputs.end() ||
         std::any_of(envelope.mounts.begin(), envelope.mounts.end(),
                     [&](const Mount& mount) { return Within(path, mount.host); });
}

bool Reaches(const Envelope& envelope, const std::string& line) {
  return std::find(envelope.network.begin(), envelope.network.end(), line) !=
         envelope.network.end();
}

// 0 is no bound of its own: as an unsigned number, one less is the largest.
bool HasMoreConnections(uint64_t asked, uint64_t most) { return asked - 1 > most - 1; }

Status NarrowSyscalls(const Envelope& parent, Envelope& child) {
  if (!Imported(parent) && !Imported(child)) {
    child.syscalls = std::min(parent.syscalls, child.syscalls);
    return {};
  }
  if (Imported(parent) && Imported(child) && parent.imported_seccomp == child.imported_seccomp) {
    return {};
  }
  if (Imported(child) && parent.syscalls == SyscallProfile::kCompat) {
    return {};  // an imported profile only ever narrows compat
  }
  if (Imported(parent) && child.syscalls == SyscallProfile::kCompat) {
    child.syscalls = SyscallProfile::kImported;
    child.imported_seccomp = parent.imported_seccomp;
    return {};
  }
  return Refused("policy.narrow", "the seccomp profiles of the two tools cannot be combined",
                 "give both tools the same profile");
}

}  // namespace

Result<Envelope> Intersect(const Envelope& parent, const Envelope& child) {
  Envelope both = child;
  both.level = Strength(parent.level) > Strength(child.level) ? parent.level : child.level;
  both.floor = parent.floor.Union(child.floor);
  for (const auto& cap : kTimes) {
    both.limits.*cap.member = std::min(parent.limits.*cap.member, child.limits.*cap.member);
  }
  for (const auto& cap : kSizes) {
    both.limits.*cap.member = std::min(parent.limits.*cap.member, child.limits.*cap.member);
  }
  both.mounts = CommonMounts(parent, child);
  std::erase_if(both.inputs, [&](const std::string& path) { return !Readable(parent, path); });
  TRY_ASSIGN(both.runtimes, CommonRuntimes(parent, child));
  std::erase_if(both.optional_runtimes,
                [&](const std::string& runtime) { return !HasRuntime(parent, runtime); });
  // Rules are compared as they are written: a narrower rule of the child for the same host is not found.
  std::erase_if(both.network, [&](const std::string& line) { return !Reaches(parent, line); });
  if (HasMoreConnections(both.connections, parent.connections)) {
    both.connections = parent.connections;
  }
  if (parent.workspace != child.workspace) {
    both.workspace.clear();  // not the same place: a fresh one
    both.workspace_access = Access::kWrite;
  } else if (!child.workspace.empty()) {
    both.workspace_access = std::min(parent.workspace_access, child.workspace_access);
  }
  if (both.uid == 0) {
    both.uid = parent.uid;
  }
  TRY(NarrowSyscalls(parent, both));
  both.tty = parent.tty && child.tty;
  both.exec = parent.exec && child.exec;
  both.overlay = parent.overlay || child.overlay;
  return both;
}

std::vector<std::string_view> LimitsAbove(const Limits& most, const Limits& asked) {
  std::vector<std::string_view> above;
  for (const auto& cap : kTimes) {
    if (asked.*cap.member > most.*cap.member) {
      above.push_back(cap.name);
    }
  }
  for (const auto& cap : kSizes) {
    if (asked.*cap.member > most.*cap.member) {
      above.push_back(cap.name);
    }
  }
  return above;
}

std::vector<std::string> WiderThan(const Envelope& outer, const Envelope& inner) {
  std::vector<std::string> wider;
  if (Strength(inner.level) < Strength(outer.level)) {
    wider.push_back(
        fmt::format("level {} instead of {}", LevelName(inner.level), LevelName(outer.level)));
  }
  for (const Layer layer : outer.floor.Minus(inner.floor).list()) {
    wider.push_back(fmt::format("the floor lacks {}", LayerName(layer)));
  }
  for (const std::string_view name : LimitsAbove(outer.limits, inner.limits)) {
    wider.push_back(fmt::format("more {}", name));
  }
  for (const Mount& mount : inner.mounts) {
    const bool held =
        std::any_of(outer.mounts.begin(), outer.mounts.end(), [&](const Mount& other) {
          return Within(mount.host, other.host) && mount.access <= other.access;
        });
    if (!held) {
      wider.push_back(fmt::format("{} of {}",
                                  mount.access == Access::kWrite ? "writing" : "reading",
                                  Printable(mount.host)));
    }
  }
  for (const std::string& path : inner.inputs) {
    if (!Readable(outer, path)) {
      wider.push_back(fmt::format("reading of {}", Printable(path)));
    }
  }
  if (!inner.workspace.empty() &&
      (inner.workspace != outer.workspace || inner.workspace_access > outer.workspace_access)) {
    wider.emplace_back("the session's workspace");
  }
  for (const std::vector<std::string>* const names : {&inner.runtimes, &inner.optional_runtimes}) {
    for (const std::string& runtime : *names) {
      if (!HasRuntime(outer, runtime)) {
        wider.push_back(fmt::format("the runtime {}", Printable(runtime)));
      }
    }
  }
  if (inner.runtimes.empty() && !outer.runtimes.empty()) {
    wider.emplace_back("any runtime");
  }
  for (const std::string& line : inner.network) {
    if (!Reaches(outer, line)) {
      wider.push_back(fmt::format("reaching {}", Printable(line)));
    }
  }
  if (HasMoreConnections(inner.connections, outer.connections)) {
    wider.emplace_back("more connections");
  }
  const bool same_filter =
      inner.syscalls == outer.syscalls && inner.imported_seccomp == outer.imported_seccomp;
  const bool narrower = outer.syscalls == SyscallProfile::kCompat ||
                        (!Imported(inner) && !Imported(outer) && inner.syscalls <= outer.syscalls);
  if (!same_filter && !narrower) {
    wider.push_back(fmt::format("the system calls of {}", SyscallProfileName(inner.syscalls)));
  }
  if (inner.uid == 0 && outer.uid != 0) {
    wider.emplace_back("uid 0 inside");
  }
  if (inner.tty && !outer.tty) {
    wider.emplace_back("a terminal");
  }
  if (inner.exec && !outer.exec) {
    wider.emplace_back("execution of files that it writes");
  }
  if (!inner.overlay && outer.overlay) {
    wider.emplace_back("directories of the host without an overlay");
  }
  return wider;
}

bool Covers(const Envelope& outer, const Envelope& inner) {
  return WiderThan(outer, inner).empty();
}

}  // namespace coffer::policy
