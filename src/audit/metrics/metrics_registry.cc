// SPDX-License-Identifier: Apache-2.0
#include "audit/metrics/metrics_registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace coffer::audit {
namespace {

constexpr uint16_t kOther = 0xffff;
constexpr size_t kMaxNames = 4096;

uint16_t PlaceOf(std::span<const std::string_view> values, std::string_view value) {
  for (;;) {
    const auto found = std::find(values.begin(), values.end(), value);
    if (found != values.end()) {
      return static_cast<uint16_t>(found - values.begin());
    }
    const size_t dot = value.rfind('.');
    if (dot == std::string_view::npos) {
      return kOther;
    }
    value = value.substr(0, dot);
  }
}

std::string_view KindName(MetricKind kind) {
  return kind == MetricKind::kCounter ? "counter"
         : kind == MetricKind::kGauge ? "gauge"
                                      : "histogram";
}

// A double as Prometheus reads it back: counts without a point, the rest with as few digits as name it.
void AppendNumber(std::string& text, double value) {
  if (std::isnan(value)) {
    text += "NaN";
  } else if (std::isinf(value)) {
    text += value > 0 ? "+Inf" : "-Inf";
  } else if (value == std::trunc(value) && std::abs(value) < 1e15) {
    fmt::format_to(std::back_inserter(text), "{}", static_cast<int64_t>(value));
  } else {
    fmt::format_to(std::back_inserter(text), "{}", value);
  }
}

void AppendLabel(std::string& text, std::string_view name, std::string_view value) {
  text += text.empty() ? "" : ",";
  text += name;
  text += "=\"";
  for (const char c : value) {
    if (c == '\\' || c == '"') {
      text += '\\';
    }
    if (c == '\n') {
      text += "\\n";
    } else {
      text += c;
    }
  }
  text += '"';
}

void AppendSample(std::string& text, std::string_view name, std::string_view suffix,
                  std::string_view labels, double value) {
  text += name;
  text += suffix;
  if (!labels.empty()) {
    text += '{';
    text += labels;
    text += '}';
  }
  text += ' ';
  AppendNumber(text, value);
  text += '\n';
}

void AppendHistogram(std::string& text, const MetricSpec& spec, const std::string& labels,
                     double sum, const std::vector<uint64_t>& buckets) {
  uint64_t below = 0;
  for (size_t i = 0; i <= spec.bounds.size(); ++i) {
    below += i < buckets.size() ? buckets[i] : 0;
    std::string bound = "+Inf";
    if (i < spec.bounds.size()) {
      bound.clear();
      AppendNumber(bound, spec.bounds[i]);
    }
    std::string with_bound = labels;
    AppendLabel(with_bound, "le", bound);
    AppendSample(text, spec.name, "_bucket", with_bound, static_cast<double>(below));
  }
  AppendSample(text, spec.name, "_sum", labels, sum);
  AppendSample(text, spec.name, "_count", labels, static_cast<double>(below));
}

}  // namespace

void MetricRegistry::Allow(std::string_view label, const std::vector<std::string>& names) {
  const std::lock_guard lock(mutex_);
  Names& known = allowed_[std::string(label)];
  for (const std::string& name : names) {
    if (name != kOtherValue && known.list.size() < kMaxNames &&
        known.places.try_emplace(name, static_cast<uint16_t>(known.list.size())).second) {
      known.list.push_back(name);
    }
  }
}

MetricRegistry::Key MetricRegistry::KeyOf(size_t metric, Labels labels) const {
  Key key{static_cast<uint16_t>(metric)};
  size_t at = 0;
  for (const MetricLabel& label : specs_[metric].labels) {
    const std::string_view value = at < labels.size() ? labels.begin()[at] : kOtherValue;
    uint16_t& place = key[++at];
    if (!label.values.empty()) {
      place = PlaceOf(label.values, value);
      continue;
    }
    place = kOther;
    if (const auto names = allowed_.find(label.name); names != allowed_.end()) {
      const auto found = names->second.places.find(value);
      place = found == names->second.places.end() ? kOther : found->second;
    }
  }
  return key;
}

MetricRegistry::Cells& MetricRegistry::CellsOf(std::string_view tenant) {
  const auto found = tenants_.find(tenant);
  return found != tenants_.end() ? found->second : tenants_[std::string(tenant)];
}

void MetricRegistry::Add(std::string_view tenant, size_t metric, Labels labels, double by) {
  const std::lock_guard lock(mutex_);
  const Key key = KeyOf(metric, labels);
  sums_[key].value += by;
  if (!tenant.empty()) {
    CellsOf(tenant)[key].value += by;
  }
}

void MetricRegistry::Set(std::string_view tenant, size_t metric, Labels labels, double value) {
  const std::lock_guard lock(mutex_);
  const Key key = KeyOf(metric, labels);
  if (tenant.empty()) {
    sums_[key].value = value;
    return;
  }
  Cell& cell = CellsOf(tenant)[key];
  sums_[key].value += value - cell.value;
  cell.value = value;
}

void MetricRegistry::Observe(std::string_view tenant, size_t metric, Labels labels, double value) {
  const std::lock_guard lock(mutex_);
  const Key key = KeyOf(metric, labels);
  Count(sums_, key, value);
  if (!tenant.empty()) {
    Count(CellsOf(tenant), key, value);
  }
}

void MetricRegistry::Count(Cells& cells, const Key& key, double value) {
  const std::span<const double> bounds = specs_[key[0]].bounds;
  Cell& cell = cells[key];
  cell.buckets.resize(bounds.size() + 1);
  // A bound belongs to its own bucket: `le` is "less or equal".
  const auto bucket = std::lower_bound(bounds.begin(), bounds.end(), value) - bounds.begin();
  ++cell.buckets[static_cast<size_t>(bucket)];
  cell.value += value;
}

std::string MetricRegistry::Print(const store::TenantId& tenant) const {
  Cells cells;
  Allowed allowed;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = tenants_.find(tenant.name()); found != tenants_.end()) {
      cells = found->second;
    }
    allowed = allowed_;
  }
  return Format(cells, allowed, false);
}

std::string MetricRegistry::Print(store::AllTenants /*tag*/) const {
  Cells cells;
  Allowed allowed;
  {
    const std::lock_guard lock(mutex_);
    cells = sums_;
    allowed = allowed_;
  }
  return Format(cells, allowed, true);
}

// Every combination of the labels from `label` on.
void MetricRegistry::AddZeros(Cells& shown, Key key, size_t label, const Allowed& allowed) const {
  const std::span<const MetricLabel> labels = specs_[key[0]].labels;
  if (label == labels.size()) {
    shown.try_emplace(key, Cell{specs_[key[0]].initial, {}});
    return;
  }
  size_t size = labels[label].values.size();
  if (const auto names = allowed.find(labels[label].name); size == 0 && names != allowed.end()) {
    size = names->second.list.size();
  }
  for (size_t place = 0; place < size; ++place) {
    key[label + 1] = static_cast<uint16_t>(place);
    AddZeros(shown, key, label + 1, allowed);
  }
}

std::string MetricRegistry::Format(const Cells& cells, const Allowed& allowed, bool host) const {
  std::string text;
  for (size_t metric = 0; metric < specs_.size(); ++metric) {
    const MetricSpec& spec = specs_[metric];
    if (spec.host_only && !host) {
      continue;
    }
    fmt::format_to(std::back_inserter(text), "# HELP {0} {1}\n# TYPE {0} {2}\n", spec.name,
                   spec.help, KindName(spec.kind));
    const Key first{static_cast<uint16_t>(metric)};
    const Key after{static_cast<uint16_t>(metric + 1)};
    Cells shown(cells.lower_bound(first), cells.lower_bound(after));
    if (spec.from_start) {
      AddZeros(shown, first, 0, allowed);
    }
    for (const auto& [key, cell] : shown) {
      std::string labels;
      for (size_t i = 0; i < spec.labels.size(); ++i) {
        const MetricLabel& label = spec.labels[i];
        const uint16_t place = key[i + 1];
        AppendLabel(labels, label.name,
                    place == kOther         ? kOtherValue
                    : !label.values.empty() ? label.values[place]
                                            : allowed.find(label.name)->second.list[place]);
      }
      if (spec.kind == MetricKind::kHistogram) {
        AppendHistogram(text, spec, labels, cell.value, cell.buckets);
      } else {
        AppendSample(text, spec.name, "", labels, cell.value);
      }
    }
  }
  return text;
}

}  // namespace coffer::audit
