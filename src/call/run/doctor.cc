// SPDX-License-Identifier: Apache-2.0
#include "call/run/doctor.h"

#include <unistd.h>

#include "call/run/run_call.h"
#include "call/run/scratch.h"
#include "isolation/name_redirect.h"
#include "limits/sweep.h"

namespace coffer::call {
namespace {

using policy::Layer;
using policy::Level;

limits::Controller ControllerOf(Layer layer) {
  switch (layer) {
    case Layer::kCgroupMemory:
      return limits::Controller::kMemory;
    case Layer::kCgroupPids:
      return limits::Controller::kPids;
    case Layer::kCgroupIo:
      return limits::Controller::kIo;
    default:
      return limits::Controller::kCpuacct;
  }
}

bool IsCgroup(Layer layer) {
  return layer == Layer::kCgroupMemory || layer == Layer::kCgroupPids ||
         layer == Layer::kCgroupCpu || layer == Layer::kCgroupIo;
}

bool ContainerOnly(Layer layer) {
  switch (layer) {
    case Layer::kUserns:
    case Layer::kMountns:
    case Layer::kPidns:
    case Layer::kNetns:
    case Layer::kIpcns:
    case Layer::kUtsns:
    case Layer::kCgroupns:
    case Layer::kPrivateRoot:
    case Layer::kPrivateProc:
    case Layer::kDiskQuota:
      return true;
    default:
      return false;
  }
}

LayerFinding FindLayer(Layer layer, Level level, const Diagnosis& diagnosis) {
  LayerFinding finding{layer, true, "", ""};
  if (IsCgroup(layer)) {
    finding.available = diagnosis.cgroups.layers().Has(layer);
    if (!finding.available) {
      const limits::ControllerPlace& place = diagnosis.cgroups.at(ControllerOf(layer));
      finding.why = place.why_not.empty() ? "no such cgroup controller" : place.why_not;
      finding.fix = place.fix;
    }
  } else if (layer == Layer::kLandlock) {
    finding.available = diagnosis.host.landlock_abi > 0;
    finding.why = finding.available ? "" : "this kernel has no Landlock, or it is switched off";
    finding.fix =
        finding.available ? "" : "boot with landlock in the lsm= list; Linux 5.13 or newer";
  } else if (layer == Layer::kSeccomp) {
    finding.available = diagnosis.host.seccomp;
    finding.why = finding.available ? "" : "this kernel has no seccomp filters";
  } else if (ContainerOnly(layer)) {
    finding.available = level == Level::kContainer && diagnosis.host.containers;
    if (level == Level::kProcess) {
      finding.why = "the process level has none";
    } else if (!finding.available) {
      finding.why = diagnosis.host.cause;
      finding.fix = diagnosis.host.fix;
    }
  }
  return finding;
}

RunOutcome Try(Level level) {
  RunRequest request;
  request.command = {"true"};
  request.receipt_path = "none";  // only so that layers are probed; nothing is written here
  request.envelope.level = level;
  return RunCall(request);
}

}  // namespace

Diagnosis Diagnose() {
  Diagnosis diagnosis;
  diagnosis.root = ::geteuid() == 0;
  diagnosis.host = isolation::ProbeHost();
  if (Result<limits::CgroupHost> cgroups = limits::ProbeCgroups(); cgroups.ok()) {
    diagnosis.cgroups = std::move(cgroups).value();
  }
  using isolation::RedirectFamily;
  if (const Status redirect = isolation::CheckNameRedirect(RedirectFamily::kIpv4); !redirect.ok()) {
    diagnosis.not_transparent = redirect.error().message;
  } else if (const Status ipv6 = isolation::CheckNameRedirect(RedirectFamily::kIpv6); !ipv6.ok()) {
    diagnosis.ipv4_only = ipv6.error().message;
  }
  for (const Level level : {Level::kContainer, Level::kProcess}) {
    const RunOutcome outcome = Try(level);
    LevelFinding finding{level, outcome.exit_status == 0, "", {}};
    if (outcome.error) {
      finding.error = outcome.error->message;
    }
    if (level == Level::kContainer) {
      diagnosis.trial_ok = finding.reachable;
      diagnosis.trial_error = finding.error;
      diagnosis.trial_layers = outcome.receipt.layers;
    }
    for (int i = 0; i < policy::kLayerCount; ++i) {
      finding.layers.push_back(FindLayer(static_cast<Layer>(i), level, diagnosis));
    }
    diagnosis.levels.push_back(std::move(finding));
  }
  return diagnosis;
}

SweepSummary SweepAll() {
  SweepSummary summary;
  if (Result<limits::CgroupHost> cgroups = limits::ProbeCgroups(); cgroups.ok()) {
    limits::SweepReport report = limits::SweepCgroups(*cgroups, limits::SweepDepth::kEverywhere);
    summary.cgroups = report.removed;
    summary.problems = std::move(report.problems);
  }
  summary.directories = SweepScratch();
  return summary;
}

}  // namespace coffer::call
