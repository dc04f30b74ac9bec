// SPDX-License-Identifier: Apache-2.0
#include "call/run/summary.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/hash.h"
#include "base/quantity.h"
#include "call/run/egress_messages.h"
#include "isolation/seccomp/waiting_thread.h"
#include "policy/scrub.h"

namespace coffer::call {
namespace {

using policy::Layer;

std::string StandIn(Layer layer) {
  switch (layer) {
    case Layer::kCgroupMemory:
      return "the supervisor sums the tree about every 10 ms and kills at the cap; RLIMIT_DATA "
             "below it";
    case Layer::kCgroupPids:
      return "the supervisor counts threads before they are made; RLIMIT_NPROC";
    case Layer::kCgroupCpu:
      return "the supervisor sums the tree and estimates what it did not see; RLIMIT_CPU below it";
    case Layer::kCgroupIo:
      return "the supervisor adds up what the tree's processes have read and written";
    case Layer::kDiskQuota:
      return "the supervisor watches the directory and kills at the cap; RLIMIT_FSIZE below it";
    default:
      return "";
  }
}

std::string FindOr(const std::map<Layer, std::string>& reasons, Layer layer,
                   std::string otherwise) {
  const auto found = reasons.find(layer);
  return found == reasons.end() ? std::move(otherwise) : found->second;
}

std::string ReasonFor(Layer layer, const Launched& launched) {
  switch (layer) {
    case Layer::kCgroupMemory:
    case Layer::kCgroupPids:
    case Layer::kCgroupCpu:
      return FindOr(launched.cgroup_why, layer, "not found active when probed");
    case Layer::kCgroupIo:
      return launched.io_why;
    case Layer::kLandlock:
      return "this kernel has no Landlock, or it is switched off";
    case Layer::kDiskQuota:
      return "a writable host directory has no quota of its own";
    default:
      return "not found active when probed";
  }
}

audit::CapUse Use(uint64_t cap, std::optional<uint64_t> used, const char* unit, bool breached,
                  bool enforced) {
  return {cap, used, unit, breached, enforced};
}

// What a refused system call needs. A datagram socket of AF_UNIX is a matter of what is shown, not of the profile.
std::string FixFor(const isolation::DeniedCall& denied, policy::Level level) {
  const bool makes_socket = denied.syscall == "socket" || denied.syscall == "socketpair";
  if (makes_socket && denied.arguments.starts_with("AF_UNIX, SOCK_DGRAM") &&
      level == policy::Level::kContainer) {
    return "name what is needed with --runtime, without mounts: datagrams work where no directory "
           "of the host is shown; streams and packets work here";
  }
  return "use --seccomp compat, or a profile that allows it";
}

// The network is part of what a call may touch. Without rules the id is the envelope's own.
std::string EnvelopeIdOf(const RunRequest& request) {
  if (request.egress.empty()) {
    return policy::EnvelopeId(request.envelope);
  }
  return HashOf(policy::CanonicalForm(request.envelope) + "\n" + EncodeGrants(request.egress));
}

using Why = isolation::RefusedConnect::Why;

bool IsOutside(const isolation::DeniedCall& denied) {
  return denied.connect == Why::kNoRoute || denied.connect == Why::kNoNames;
}

// A name server is looked for before anything is said about the name. With hosts to reach there is
// one, which tells itself what it refused.
void AddOutside(const RunRequest& request, const isolation::DeniedCall& denied,
                audit::Receipt& receipt) {
  const bool names = denied.connect == Why::kNoNames;
  if (names && !request.egress.empty()) {
    return;
  }
  receipt.denials.push_back({"egress", names ? "resolve" : "connect", denied.arguments, "egress",
                             request.egress.empty() ? "this call has no network"
                                                    : "hosts are reached by their names only",
                             "name the host: --allow HOST[:PORT], in a manifest [[network.allow]]",
                             denied.count});
}

}  // namespace

bool LookedOutside(const RunRequest& request, const isolation::DenialRecorder& denials) {
  return request.egress.empty() &&
         std::any_of(denials.denials().begin(), denials.denials().end(), IsOutside);
}

void DescribeRequest(const RunRequest& request, audit::Receipt& receipt) {
  receipt.identity.user = fmt::format("uid:{}", ::getuid());
  receipt.identity.reason = policy::ScrubText(request.reason);
  receipt.envelope_id = EnvelopeIdOf(request);
  const std::vector<std::string> words = policy::ScrubWords(request.command);
  std::string all;
  for (const std::string& arg : words) {
    all += arg;
    all += '\0';
  }
  receipt.args_hash = HashOf(all);
  for (const Layer layer : request.envelope.floor.list()) {
    receipt.floor.emplace_back(policy::LayerName(layer));
  }
  bool writes = !request.egress.empty();  // what a request does there is not for us to know
  for (const policy::Mount& mount : request.envelope.mounts) {
    writes = writes || mount.access == policy::Access::kWrite;
  }
  receipt.effect = writes ? "irreversible" : "read-only";
  for (const std::string& arg : words) {
    receipt.args_redacted.push_back(receipt.args_redacted.empty() ? arg : HashOf(arg));
  }
}

void DescribeIsolation(const RunRequest& /*request*/, const Launched& launched,
                       audit::Receipt& receipt) {
  receipt.level = std::string(policy::LevelName(launched.plan->level));
  for (const RunRequest::Publish& port : launched.ports.published()) {
    receipt.published.push_back({port.host, port.inside});
  }
  if (!launched.not_transparent.empty()) {
    receipt.missing.push_back({"transparent-egress", launched.not_transparent,
                               "the proxy variables: programs that use them are served"});
  }
  if (!launched.ipv4_only.empty()) {
    receipt.missing.push_back(
        {"transparent-egress-ipv6", launched.ipv4_only, "IPv4 addresses of the same names"});
  }
  const bool unasked = launched.plan->serve_locks && !launched.boundary->denials_recorded();
  if (launched.locks_unchecked || unasked) {
    receipt.missing.push_back(
        {"read-only-locks",
         unasked ? "a sandbox around this one keeps the supervisor from being asked"
                 : std::string(isolation::kNoDuplicates),
         ""});
  }
  if (!launched.probed) {
    return;
  }
  for (const Layer layer : launched.layers.list()) {
    receipt.layers.emplace_back(policy::LayerName(layer));
  }
  for (const Layer layer : launched.promised.Minus(launched.layers).list()) {
    receipt.missing.push_back(
        {std::string(policy::LayerName(layer)), ReasonFor(layer, launched), StandIn(layer)});
  }
  const isolation::BoundaryPlan& plan = *launched.plan;
  if (!launched.boundary->counters_bounded() &&
      !(plan.level == policy::Level::kProcess && plan.own_uid)) {
    receipt.missing.push_back(
        {"user-counters",
         plan.level == policy::Level::kProcess ? "the command has the caller's uid, and the kernel "
                                                 "counts inotify and the like per user"
                                               : "/proc/sys/user cannot be written on this host",
         "the host's own limits per user, such as fs.inotify.max_user_instances"});
  }
  if (plan.level == policy::Level::kProcess && !plan.scoped_kill) {
    receipt.missing.push_back(
        {"signal-scope",
         "the command has the caller's uid, and this kernel's Landlock does not scope signals "
         "(ABI 6, Linux 6.12)",
         "nothing: it can signal the caller's other processes; use --level container, or run "
         "coffer as root"});
  }
}

void DescribeNoStart(const RunRequest& request, audit::Receipt& receipt) {
  const policy::Limits& caps = request.envelope.limits;
  const auto unused = [](uint64_t cap, const char* unit) {
    return Use(cap, 0, unit, /*breached=*/false, /*enforced=*/true);
  };
  receipt.limits = {
      {"cpu", unused(static_cast<uint64_t>(caps.cpu.count()), "ns")},
      {"wall", unused(static_cast<uint64_t>(caps.wall.count()), "ns")},
      {"memory", unused(caps.memory, "bytes")},
      {"processes", unused(caps.processes, "count")},
      {"open_files", unused(caps.open_files, "count")},
      {"disk", unused(caps.disk, "bytes")},
      {"io", unused(caps.io, "bytes")},
      {"output", unused(caps.output, "bytes")},
  };
}

void DescribeEnd(const RunRequest& request, const isolation::Boundary& boundary, Watch& watch,
                 const WatchResult& watched, audit::Receipt& receipt) {
  const policy::Limits& caps = request.envelope.limits;
  const limits::Usage& usage = watched.usage;
  const limits::Events& events = watched.events;
  const auto reached = [&](limits::Cap cap) {
    return (watched.breach && watched.breach->cap == cap) ||
           limits::Reached(cap, caps, usage, events);
  };
  using limits::Cap;
  const Enforced& enforced = watched.enforced;
  constexpr bool kAlways = true;
  receipt.limits = {
      {"cpu", Use(static_cast<uint64_t>(caps.cpu.count()), static_cast<uint64_t>(usage.cpu.count()),
                  "ns", reached(Cap::kCpu), enforced.cpu)},
      {"wall", Use(static_cast<uint64_t>(caps.wall.count()),
                   static_cast<uint64_t>(events.wall.count()), "ns", reached(Cap::kWall), kAlways)},
      {"memory",
       Use(caps.memory, usage.memory_peak, "bytes", reached(Cap::kMemory), enforced.memory)},
      {"processes",
       Use(caps.processes, usage.pids_peak, "count", reached(Cap::kProcesses), enforced.processes)},
      {"open_files", Use(caps.open_files, std::nullopt, "count", false, kAlways)},
      {"disk",
       Use(caps.disk, std::max(events.disk_bytes, events.full_place ? events.full_place->bytes : 0),
           "bytes", watched.quota_full || reached(Cap::kDisk), enforced.disk)},
      {"io", Use(caps.io, usage.io_bytes, "bytes", reached(Cap::kIo), enforced.io)},
      {"output",
       Use(caps.output, events.output_bytes, "bytes", watch.budget().truncated(), kAlways)},
  };
  const std::string rule =
      "seccomp." + std::string(policy::SyscallProfileName(request.envelope.syscalls));
  std::map<std::string, uint64_t> by_name;
  for (const isolation::DeniedCall& denied : watch.denials().denials()) {
    if (IsOutside(denied)) {
      AddOutside(request, denied, receipt);
      continue;
    }
    by_name[denied.syscall] += denied.count;
    if (denied.connect) {
      receipt.denials.push_back(
          {"isolation", "connect", fmt::format("{}({})", denied.syscall, denied.arguments),
           "isolation.host_socket", "the socket belongs to a program of the host",
           "no flag opens it: let the program inside make its socket in /tmp or /workspace",
           denied.count});
      continue;
    }
    if (denied.read_only_lock) {
      receipt.denials.push_back(
          {"isolation", "lock", fmt::format("{}({})", denied.syscall, denied.arguments),
           "isolation.read_only_lock",
           "a file that may only be read cannot be locked exclusively: programs of the host that "
           "write to it would wait",
           "give it with --rw, or a copy with --in", denied.count});
      continue;
    }
    receipt.denials.push_back({"isolation", "syscall",
                               fmt::format("{}({})", denied.syscall, denied.arguments), rule,
                               "the system call is not in the profile; it was answered EPERM",
                               FixFor(denied, boundary.plan().level), denied.count});
  }
  receipt.syscalls_denied.assign(by_name.begin(), by_name.end());
  receipt.denials_recorded = boundary.denials_recorded();
  receipt.output_bytes = watch.budget().delivered;
  receipt.output_produced = watch.budget().produced;
  receipt.output_truncated = watch.budget().truncated();
  receipt.output_sha256 = watch.out().Digest();
  receipt.stderr_sha256 = watch.err().Digest();
  receipt.steps_us = boundary.StepTimes();
}

}  // namespace coffer::call
