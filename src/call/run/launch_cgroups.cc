// SPDX-License-Identifier: Apache-2.0
#include "call/run/launch_cgroups.h"

#include <sys/resource.h>
#include <unistd.h>

#include <utility>

#include "call/run/launch_filter.h"
#include "limits/breach.h"
#include "limits/cgroup/name.h"
#include "limits/rlimits.h"

namespace coffer::call {

using policy::Layer;

namespace {

constexpr uint64_t kSpareBesideCgroup = 16;

std::vector<isolation::Rlimit> ChooseRlimits(const policy::Limits& caps, bool cgroup_memory,
                                             bool cgroup_pids, uint64_t foreign_tasks,
                                             bool host_files) {
  std::vector<isolation::Rlimit> rlimits;
  const limits::RlimitTable table =
      limits::BuildRlimits(caps, cgroup_memory, foreign_tasks, host_files);
  for (size_t i = 0; i < table.count; ++i) {
    isolation::Rlimit limit{table.entries[i].resource, table.entries[i].soft,
                            table.entries[i].hard};
    if (limit.resource == RLIMIT_NPROC) {
      // A cgroup refuses first and counts its refusals; this is the net below it. Without one, what is refused leaves
      // no trace but a tree that is larger than the cap (limits/breach.h).
      const uint64_t spare = cgroup_pids ? kSpareBesideCgroup : limits::kSpareTasks;
      limit.soft += spare;
      limit.hard += spare;
    }
    rlimits.push_back(limit);
  }
  return rlimits;
}

// Empty if it is usable, or if that is not known.
std::string WhyNot(const limits::ControllerPlace& place) {
  if (place.usable || place.why_not.empty()) {
    return {};
  }
  return place.fix.empty() ? place.why_not : place.why_not + "; " + place.fix;
}

// Its own reason: on v1 each controller has a place of its own.
std::string WhyNoCgroup(const limits::CgroupHost& host, limits::Controller controller) {
  if (std::string why = WhyNot(host.at(controller)); !why.empty()) {
    return why;
  }
  for (const limits::ControllerPlace& place : host.places) {
    if (std::string why = WhyNot(place); !why.empty()) {
      return why;
    }
  }
  return "the host has no cgroup controllers";
}

std::string WhyNoIo(const limits::CgroupHost& host) {
  std::string why = WhyNot(host.at(limits::Controller::kIo));
  return why.empty() ? "the host offers no controller that counts block I/O" : why;
}

}  // namespace

Status ProbeCgroup(const RunRequest& request, const Prepared& prepared, Cgroups& cgroups,
                   Launched& launched) {
  // I/O is counted only where host directories can be written or read: asking the host for that
  // controller costs time.
  const limits::ProbeDepth depth = !prepared.mounts.empty() ? limits::ProbeDepth::kAll
                                   : request.shares_cycles  ? limits::ProbeDepth::kTenantCall
                                                            : limits::ProbeDepth::kCall;
  TRY_ASSIGN(cgroups.host, limits::ProbeCgroups("", depth));
  const policy::LayerSet offered = cgroups.host.layers();
  for (const auto& [layer, controller] :
       {std::pair(Layer::kCgroupMemory, limits::Controller::kMemory),
        std::pair(Layer::kCgroupPids, limits::Controller::kPids),
        std::pair(Layer::kCgroupCpu, limits::Controller::kCpu)}) {
    if (!offered.Has(layer)) {
      launched.cgroup_why[layer] = WhyNoCgroup(cgroups.host, controller);
    }
  }
  launched.asks_for_threads = !offered.Has(Layer::kCgroupPids);
  if (!prepared.mounts.empty() && !offered.Has(Layer::kCgroupIo)) {
    launched.io_why = WhyNoIo(cgroups.host);
  }
  // Without a user namespace or a uid of its own, the boundary shares its count with everything else of the user.
  uint64_t foreign_tasks = 0;
  if (launched.plan->level == policy::Level::kProcess && !launched.plan->own_uid) {
    TRY_ASSIGN(foreign_tasks, limits::CountTasksOf(::getuid()));
  }
  cgroups.rlimits = ChooseRlimits(
      request.envelope.limits, offered.Has(Layer::kCgroupMemory), offered.Has(Layer::kCgroupPids),
      foreign_tasks, HasWritableMount(prepared) || launched.plan->level == policy::Level::kProcess);
  return {};
}

Status MakeCgroup(const RunRequest& request, const Prepared& prepared, const Cgroups& cgroups,
                  Launched& launched) {
  limits::CgroupWants wants;
  wants.io = !prepared.mounts.empty();
  if (request.shares_cycles) {
    wants.level =
        limits::TenantLevelName(cgroups.host.pid_namespace, request.state, request.tenant);
    wants.calls_level = limits::CallsLevelName(cgroups.host.pid_namespace, request.state);
  }
  TRY_ASSIGN(launched.cgroup, limits::Cgroup::Create(cgroups.host, request.envelope.limits, wants));
  isolation::BoundaryPlan& plan = *launched.plan;
  plan.clone_into_cgroup = launched.cgroup.clone_into_fd();
  if (plan.level == policy::Level::kContainer &&
      launched.cgroup.layers().Has(Layer::kCgroupMemory)) {
    plan.cgroup_type = plan.clone_into_cgroup >= 0 ? "cgroup2" : "cgroup";
  }
  return {};
}

}  // namespace coffer::call
