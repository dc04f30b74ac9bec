// SPDX-License-Identifier: Apache-2.0
#include "watch/anomaly.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/quantity.h"

namespace coffer::watch {
namespace {

constexpr int64_t kIdleHours = 2;     // after which a baseline is read again when it is needed
constexpr int64_t kPruneHours = 24;   // between two looks for what is too old
constexpr size_t kMaxWatched = 4096;  // baselines in memory; each is at most 32 KiB
// In the column of measures: that an alert was raised in that hour.
constexpr std::string_view kAlertSuffix = ".alert";

int64_t HourOf(Nanos time) { return std::chrono::duration_cast<std::chrono::hours>(time).count(); }

double Seconds(Nanos time) { return std::chrono::duration<double>(time).count(); }

std::string Amount(Measure measure, double value) {
  switch (measure) {
    case Measure::kDuration:
    case Measure::kCpu:
      return fmt::format("{:.2f}s", value);
    case Measure::kMemory:
    case Measure::kOutput:
      return FormatSize(static_cast<uint64_t>(std::llround(std::max(0.0, value))));
    default:
      return fmt::format("{:.0f}", value);
  }
}

std::string WordsOf(Measure measure, const std::string& tool, double value, const Judgement& j) {
  const std::string seen = Amount(measure, value);
  const std::string usual = fmt::format("usual is {} (deviation {})", Amount(measure, j.mean),
                                        Amount(measure, j.deviation));
  switch (measure) {
    case Measure::kRate:
      return fmt::format("{} was called {} times in this hour; {}", tool, seen, usual);
    case Measure::kDenials:
      return fmt::format("{} was denied {} operations in this hour; {}", tool, seen, usual);
    case Measure::kDuration:
      return fmt::format("a call of {} took {}; {}", tool, seen, usual);
    case Measure::kCpu:
      return fmt::format("a call of {} used {} of CPU; {}", tool, seen, usual);
    case Measure::kMemory:
      return fmt::format("a call of {} used {} of memory; {}", tool, seen, usual);
    case Measure::kOutput:
      return fmt::format("a call of {} wrote {}; {}", tool, seen, usual);
  }
  return {};
}

// A window that is shorter than the least history would never be full enough.
AnomalyRules Fitting(AnomalyRules rules) {
  const auto hours = static_cast<size_t>(std::max<int64_t>(2, HourOf(rules.window)));
  rules.least_hours = std::min(rules.least_hours, hours / 2);
  return rules;
}

}  // namespace

Anomalies::Anomalies(store::Store& store, AnomalyRules rules, Raised raised)
    : store_(store),
      rules_(Fitting(rules)),
      raised_(std::move(raised)),
      window_(std::max<int64_t>(2, HourOf(rules.window))) {}

void Anomalies::Load(Watched& watched, std::string_view word, const Bucket& bucket) {
  const bool alerted = word.ends_with(kAlertSuffix);
  if (alerted) {
    word.remove_suffix(kAlertSuffix.size());
  }
  const std::optional<Measure> measure = FindMeasure(word);
  if (!measure) {
    return;  // of a newer version
  }
  const auto index = static_cast<size_t>(*measure);
  if (alerted) {
    watched.alerted[index] = std::max(watched.alerted[index], bucket.hour);
  } else {
    watched.baselines[index].Merge(bucket);
  }
}

Result<Anomalies::Watched*> Anomalies::Find(const Name& name, int64_t hour) {
  const auto found = watched_.find(name);
  if (found != watched_.end()) {
    return &found->second;
  }
  TRY_ASSIGN(const std::vector<store::BaselineHour> kept,
             store::ReadBaselines(store_, name.first, name.second, hour - window_));
  Watched watched;
  for (const store::BaselineHour& row : kept) {
    Load(watched, row.measure, {row.hour, row.samples, row.total, row.squares});
  }
  for (const auto& [place, bucket] : unwritten_) {
    if (place.name == name) {
      Load(watched, place.measure, bucket);
    }
  }
  return &watched_.emplace(name, std::move(watched)).first->second;
}

std::optional<Alert> Anomalies::Note(const Name& name, Watched& watched, Measure measure,
                                     double value, Nanos at) {
  const auto index = static_cast<size_t>(measure);
  Baseline& baseline = watched.baselines[index];
  const int64_t hour = watched.hour;
  const std::string word(MeasureName(measure));
  // A size is compared with what came before it, a count with the hours before this one.
  const Usual usual = IsCount(measure) ? baseline.OfHours(hour - window_, hour)
                                       : baseline.OfSamples(hour - window_, hour + 1);
  baseline.Add(hour, value);
  Bucket& unwritten = unwritten_[{name, word, hour}];
  unwritten.hour = hour;
  unwritten.Add(value);
  const double judged_value = IsCount(measure) ? baseline.TotalOf(hour) : value;
  const Judgement judged = Judge(measure, judged_value, usual, rules_);
  if (!judged.unusual || watched.alerted[index] == hour) {
    return std::nullopt;
  }
  watched.alerted[index] = hour;
  Bucket& mark = unwritten_[{name, word + std::string(kAlertSuffix), hour}];
  mark.hour = hour;
  mark.Add(judged_value);
  return Alert{
      name.first,  name.second,      word, judged_value,
      judged.mean, judged.deviation, at,   WordsOf(measure, name.second, judged_value, judged)};
}

Status Anomalies::Observe(const store::TenantId& tenant, std::string_view tool,
                          const CallMeasures& call) {
  std::vector<Alert> alerts;
  {
    const std::lock_guard lock(mutex_);
    const Name name(tenant, tool);
    TRY_ASSIGN(Watched* const watched, Find(name, HourOf(call.at)));
    if (const int64_t hour = HourOf(call.at); watched->hour != hour) {
      watched->hour = hour;
      for (Baseline& baseline : watched->baselines) {
        baseline.Forget(watched->hour - window_);
      }
    }
    const auto note = [&](Measure measure, double value) {
      if (std::optional<Alert> alert = Note(name, *watched, measure, value, call.at)) {
        alerts.push_back(std::move(*alert));
      }
    };
    note(Measure::kRate, 1);
    note(Measure::kDenials, static_cast<double>(call.denials));
    if (call.duration) {
      note(Measure::kDuration, Seconds(*call.duration));
    }
    if (call.cpu) {
      note(Measure::kCpu, Seconds(*call.cpu));
    }
    if (call.memory) {
      note(Measure::kMemory, static_cast<double>(*call.memory));
    }
    if (call.output) {
      note(Measure::kOutput, static_cast<double>(*call.output));
    }
  }
  if (raised_) {
    for (const Alert& alert : alerts) {
      raised_(alert);
    }
  }
  return {};
}

Status Anomalies::Flush() {
  const std::lock_guard one_at_a_time(flush_mutex_);
  std::map<Place, Bucket> taken;
  const int64_t now = HourOf(store_.Now());
  bool prune = false;
  {
    const std::lock_guard lock(mutex_);
    taken.swap(unwritten_);
    prune = now - pruned_ >= kPruneHours;
    pruned_ = prune ? now : pruned_;
  }
  Status written;
  for (auto at = taken.begin(); at != taken.end() && written.ok();) {
    // Places sort by tenant: one transaction for each.
    const store::TenantId tenant = at->first.name.first;
    std::vector<store::BaselineHour> rows;
    auto end = at;
    for (; end != taken.end() && end->first.name.first == tenant; ++end) {
      rows.push_back({end->first.name.second, end->first.measure, end->first.hour,
                      end->second.samples, end->second.total, end->second.squares});
    }
    written = store::AddBaselines(store_, tenant, rows);
    at = written.ok() ? taken.erase(at, end) : at;
  }
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [place, bucket] : taken) {
      Bucket& back = unwritten_[place];
      back.hour = bucket.hour;
      back.samples += bucket.samples;
      back.total += bucket.total;
      back.squares += bucket.squares;
    }
    std::erase_if(watched_, [&](const auto& one) {
      return written.ok() && (one.second.hour < now - kIdleHours || watched_.size() > kMaxWatched);
    });
  }
  if (prune && written.ok()) {
    TRY(store::PruneBaselines(store_, store::AllTenants{}, now - window_));
  }
  return written;
}

}  // namespace coffer::watch
