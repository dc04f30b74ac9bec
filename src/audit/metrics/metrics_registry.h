// SPDX-License-Identifier: Apache-2.0
//
// Counters, gauges and histograms, kept per tenant, printed in Prometheus' text format (0.0.4).
//
// Two things hold by construction. Labels are closed: a value that is not in its list is counted as "other", so no id,
// host, user or invented tool name ever becomes a series, and the number of series has a bound. Tenants are apart: a
// value is added to its tenant's cells and to the sums, and the printer chooses one of the two; no label has
// a tenant's name. Values live in memory and begin at nothing with the process, as Prometheus expects.
//
// Thread-safe: one lock, held for a look-up and an addition. Printing copies under the lock and formats without it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/tenant.h"

namespace coffer::audit {

enum class MetricKind : uint8_t { kCounter, kGauge, kHistogram };

struct MetricLabel {
  std::string_view name;
  // "policy.path.broad" counts as "policy.path" if only that is in the list. Empty: the names that were
  // given to Allow for this label.
  std::span<const std::string_view> values;
};

struct MetricSpec {
  std::string_view name;
  std::string_view help;
  MetricKind kind = MetricKind::kCounter;
  std::span<const MetricLabel> labels = {};  // at most kMaxLabels
  std::span<const double> bounds = {};       // of a histogram, growing
  bool from_start = false;  // every combination of labels is printed, also while it is zero
  bool host_only = false;   // says something of the host: printed only with the sums
  double initial = 0;       // the value before the first change
};

inline constexpr size_t kMaxLabels = 3;
inline constexpr std::string_view kOtherValue = "other";

class MetricRegistry {
 public:
  using Labels = std::initializer_list<std::string_view>;  // in the order of the spec

  // `specs` outlives it.
  explicit MetricRegistry(std::span<const MetricSpec> specs) : specs_(specs) {}

  // Values that a label without a list may have: tools, routes. Values known before stay known, so that their counters
  // do not vanish.
  void Allow(std::string_view label, const std::vector<std::string>& names);

  // `metric` is an index into the specs. An empty tenant: in the sums only. Add is for counters and gauges.
  void Add(std::string_view tenant, size_t metric, Labels labels, double by = 1);
  void Set(std::string_view tenant, size_t metric, Labels labels, double value);
  void Observe(std::string_view tenant, size_t metric, Labels labels, double value);

  std::string Print(const store::TenantId& tenant) const;
  std::string Print(store::AllTenants) const;

 private:
  // The metric, and for each label the place of its value in the list; sorts as it is printed.
  using Key = std::array<uint16_t, kMaxLabels + 1>;
  struct Cell {
    double value = 0;               // of a histogram: the sum
    std::vector<uint64_t> buckets;  // not cumulative; the last is what lies beyond all bounds
  };
  using Cells = std::map<Key, Cell>;

  struct Names {
    std::vector<std::string> list;  // only grows
    std::map<std::string, uint16_t, std::less<>> places;
  };
  using Allowed = std::map<std::string, Names, std::less<>>;  // by label

  Key KeyOf(size_t metric, Labels labels) const;
  Cells& CellsOf(std::string_view tenant);
  void Count(Cells& cells, const Key& key, double value);
  void AddZeros(Cells& shown, Key key, size_t label, const Allowed& allowed) const;
  std::string Format(const Cells& cells, const Allowed& allowed, bool host) const;

  const std::span<const MetricSpec> specs_;
  mutable std::mutex mutex_;
  Allowed allowed_;
  Cells sums_;
  std::map<std::string, Cells, std::less<>> tenants_;
};

}  // namespace coffer::audit
