// SPDX-License-Identifier: Apache-2.0
#include "policy/layer.h"

#include <array>

namespace coffer::policy {
namespace {

constexpr std::array<std::string_view, kLayerCount> kLayerNames = {
    "userns",       "mountns",       "pidns",        "netns",        "ipcns",
    "utsns",        "cgroupns",      "private-root", "private-proc", "uid",
    "capabilities", "no-new-privs",  "seccomp",      "landlock",     "rlimits",
    "disk-quota",   "cgroup-memory", "cgroup-pids",  "cgroup-cpu",   "cgroup-io",
};

}  // namespace

std::string_view LayerName(Layer layer) { return kLayerNames[static_cast<size_t>(layer)]; }

std::optional<Layer> FindLayer(std::string_view name) {
  for (size_t i = 0; i < kLayerNames.size(); ++i) {
    if (kLayerNames[i] == name) {
      return static_cast<Layer>(i);
    }
  }
  return std::nullopt;
}

std::vector<Layer> LayerSet::list() const {
  std::vector<Layer> layers;
  for (int i = 0; i < kLayerCount; ++i) {
    if (Has(static_cast<Layer>(i))) {
      layers.push_back(static_cast<Layer>(i));
    }
  }
  return layers;
}

}  // namespace coffer::policy
