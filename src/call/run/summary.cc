// SPDX-License-Identifier: Apache-2.0
#include "call/run/summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/hash.h"
#include "base/quantity.h"
#include "call/run/egress_messages.h"
#include "isolation/seccomp/profile.h"
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

// What a refused system call needs. Sockets are a matter of the level and of what is shown first, then of the profile.
std::string FixFor(const isolation::DeniedCall& denied, const policy::Envelope& envelope,
                   policy::Level level) {
  if (denied.syscall == "socket" && level == policy::Level::kProcess) {
    return "use --level container: the process level has no sockets";
  }
  const bool makes_socket = denied.syscall == "socket" || denied.syscall == "socketpair";
  if (makes_socket && denied.arguments.starts_with("AF_UNIX, SOCK_DGRAM") &&
      level == policy::Level::kContainer) {
    return "name what is needed with --runtime, without mounts: datagrams work where no directory "
           "of the host is shown; streams and packets work here";
  }
  const bool named = denied.syscall != "others";
  if (named && !isolation::CompatAllowsMore(denied.syscall, envelope.syscalls)) {
    return "no flag and no profile allows it: docs/SECCOMP.md says why";
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

}  // namespace

void DescribeRefusedNetwork(const RunRequest& request, const Error& error,
                            audit::Receipt& receipt) {
  if (error.kind != ErrorKind::kRefused || error.code != "policy.egress") {
    return;
  }
  const std::vector<std::string>& allow = request.egress.allow;
  receipt.denials.push_back({"egress", "connect",
                             allow.empty() ? "network" : fmt::format("{}", fmt::join(allow, ", ")),
                             error.code, error.message, error.hint, 1});
}

std::string ErrorClassOf(const Error& error) {
  for (const std::string_view surface : {"policy.", "isolation.", "limit.", "egress."}) {
    if (error.code.starts_with(surface)) {
      return error.code;
    }
  }
  return error.kind == ErrorKind::kRefused || error.kind == ErrorKind::kNotFound ||
                 error.kind == ErrorKind::kNotExecutable
             ? "policy." + error.code
             : (error.kind == ErrorKind::kHost ? "isolation.host" : "internal");
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
  if (!launched.sends_uncounted.empty()) {
    receipt.missing.push_back({"send-counts", launched.sends_uncounted, ""});
  }
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

void DescribeEnd(const RunRequest& request, const isolation::Boundary& boundary,
                 Supervision& supervision, const SupervisionResult& ended,
                 const OutsideTries& outside, audit::Receipt& receipt) {
  const policy::Limits& caps = request.envelope.limits;
  const limits::Usage& usage = ended.usage;
  const limits::Events& events = ended.events;
  const auto reached = [&](limits::Cap cap) {
    return (ended.breach && ended.breach->cap == cap) || limits::Reached(cap, caps, usage, events);
  };
  using limits::Cap;
  const Enforced& enforced = ended.enforced;
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
           "bytes", ended.quota_full || reached(Cap::kDisk), enforced.disk)},
      {"io", Use(caps.io, usage.io_bytes, "bytes", reached(Cap::kIo), enforced.io)},
      {"output",
       Use(caps.output, events.output_bytes, "bytes", supervision.budget().truncated(), kAlways)},
  };
  if (enforced.looks_beside_cgroup) {
    // Counted against the same cap, but only looked at: it has an entry of its own, so that the cgroup's figure stays exact.
    receipt.limits.emplace_back(
        "uncounted_memory",
        Use(caps.memory, usage.uncounted_peak, "bytes",
            usage.uncounted_peak > 0 && reached(Cap::kMemory), /*enforced=*/false));
  }
  const std::string rule =
      "seccomp." + std::string(policy::SyscallProfileName(request.envelope.syscalls));
  receipt.denials.insert(receipt.denials.end(), outside.denials().begin(), outside.denials().end());
  if (outside.unreadable()) {
    receipt.missing.push_back({"send-counts", "the network's counters cannot be read", ""});
  }
  std::map<std::string, uint64_t> by_name;
  for (const isolation::DeniedCall& denied : supervision.denials().denials()) {
    if (OutsideTries::IsOne(denied)) {
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
    receipt.denials.push_back(
        {"isolation", "syscall", fmt::format("{}({})", denied.syscall, denied.arguments), rule,
         "the system call is not in the profile; it was answered EPERM",
         FixFor(denied, request.envelope, boundary.plan().level), denied.count});
  }
  receipt.syscalls_denied.assign(by_name.begin(), by_name.end());
  receipt.denials_recorded = boundary.denials_recorded();
  receipt.output_bytes = supervision.budget().delivered;
  receipt.output_produced = supervision.budget().produced;
  receipt.output_truncated = supervision.budget().truncated();
  receipt.output_sha256 = supervision.out().Digest();
  receipt.stderr_sha256 = supervision.err().Digest();
  receipt.steps_us = boundary.StepTimes();
}

}  // namespace coffer::call
