// SPDX-License-Identifier: Apache-2.0
#include "call/run/launch_layers.h"

#include <fmt/format.h>

namespace coffer::call {

using policy::Layer;
using policy::LayerSet;

LayerSet PromisedLayers(policy::Level level, bool shows_host_files) {
  LayerSet layers{Layer::kUid,       Layer::kCapabilities, Layer::kNoNewPrivs,
                  Layer::kSeccomp,   Layer::kLandlock,     Layer::kRlimits,
                  Layer::kDiskQuota, Layer::kCgroupMemory, Layer::kCgroupPids,
                  Layer::kCgroupCpu};
  if (level == policy::Level::kContainer) {
    layers =
        layers.Union({Layer::kUserns, Layer::kMountns, Layer::kPidns, Layer::kNetns, Layer::kIpcns,
                      Layer::kUtsns, Layer::kCgroupns, Layer::kPrivateRoot, Layer::kPrivateProc});
  }
  if (shows_host_files) {
    layers.Add(Layer::kCgroupIo);
  }
  return layers;
}

Status CheckProbe(const Launched& launched) {
  const isolation::BoundaryPlan& plan = *launched.plan;
  LayerSet expected{Layer::kNoNewPrivs, Layer::kSeccomp, Layer::kRlimits};
  if (plan.level == policy::Level::kContainer) {
    expected = expected.Union({Layer::kUserns, Layer::kMountns, Layer::kPidns, Layer::kNetns,
                               Layer::kIpcns, Layer::kUtsns, Layer::kCgroupns, Layer::kPrivateRoot,
                               Layer::kCapabilities});
  }
  if (plan.own_uid) {
    expected = expected.Union({Layer::kUid, Layer::kCapabilities});
  }
  if (plan.landlock_abi > 0) {
    expected.Add(Layer::kLandlock);
  }
  const LayerSet unseen = expected.Union(launched.cgroup.layers()).Minus(launched.layers);
  if (unseen.empty()) {
    return {};
  }
  return HostFault("isolation.probe",
                   fmt::format("the boundary does not show a layer it was given: {}",
                               policy::LayerName(unseen.list().front())),
                   "nothing was run; `coffer doctor` looks at each layer");
}

Status CheckFloor(const RunRequest& request, const Launched& launched) {
  const LayerSet lacking = request.envelope.floor.Minus(launched.layers);
  if (lacking.empty()) {
    return {};
  }
  std::string names;
  for (const Layer layer : lacking.list()) {
    names += (names.empty() ? "" : ", ") + std::string(policy::LayerName(layer));
  }
  const auto why = launched.cgroup_why.find(lacking.list().front());
  return Refused("isolation.floor",
                 fmt::format("this host cannot provide what the floor demands: {}", names),
                 why == launched.cgroup_why.end() ? "`coffer doctor` says why, and what would help"
                                                  : why->second);
}

}  // namespace coffer::call
