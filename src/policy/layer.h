// SPDX-License-Identifier: Apache-2.0
//
// A layer is one independent confinement mechanism. A floor is the set of layers a call demands: with fewer than
// that, it does not run. The names are part of the public contract (receipts, --floor, manifests).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace coffer::policy {

enum class Layer : uint8_t {
  kUserns,
  kMountns,
  kPidns,
  kNetns,
  kIpcns,
  kUtsns,
  kCgroupns,
  kPrivateRoot,   // pivot_root onto a root that holds only what the envelope names
  kPrivateProc,   // a /proc of its own processes, or none
  kUid,           // a host uid of the boundary's own (as root), never 0
  kCapabilities,  // empty in all five sets
  kNoNewPrivs,
  kSeccomp,
  kLandlock,
  kRlimits,
  kDiskQuota,  // every writable place fails writes at the cap
  kCgroupMemory,
  kCgroupPids,
  kCgroupCpu,
  kCgroupIo,
};

inline constexpr int kLayerCount = static_cast<int>(Layer::kCgroupIo) + 1;

std::string_view LayerName(Layer layer);
std::optional<Layer> FindLayer(std::string_view name);

// A set of layers, in declaration order.
class LayerSet {
 public:
  LayerSet() = default;
  LayerSet(std::initializer_list<Layer> layers) {
    for (const Layer layer : layers) {
      Add(layer);
    }
  }
  void Add(Layer layer) { bits_ |= Bit(layer); }
  void Remove(Layer layer) { bits_ &= ~Bit(layer); }
  bool Has(Layer layer) const { return (bits_ & Bit(layer)) != 0; }
  bool empty() const { return bits_ == 0; }
  LayerSet Minus(LayerSet other) const { return LayerSet(bits_ & ~other.bits_); }
  LayerSet Union(LayerSet other) const { return LayerSet(bits_ | other.bits_); }
  std::vector<Layer> list() const;
  bool operator==(const LayerSet&) const = default;

 private:
  explicit LayerSet(uint32_t bits) : bits_(bits) {}
  static uint32_t Bit(Layer layer) { return 1U << static_cast<unsigned>(layer); }
  uint32_t bits_ = 0;
};

}  // namespace coffer::policy
