// SPDX-License-Identifier: Apache-2.0
//
// Notices when a tool does more than it usually does: more calls, slower ones, more denials, more
// CPU, memory or output.
//
// One baseline (baseline.h) per tenant, tool and measure, kept in the store, so a restart forgets nothing and no
// tenant's load counts for another. A value more than some deviations above the mean, or a rate of twice the mean,
// raises an alert: at most one per tool and measure in an hour, also across restarts. What raised an alert still
// becomes part of the baseline: what goes on for days is the new usual.
//
// It sees what is more than usual, never what is merely wrong: an attack as small as the daily
// noise does not show, and one that grows slowly enough takes the baseline with it. Thread-safe;
// Observe may read the store, so it is for workers.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "store/baseline.h"
#include "store/store.h"
#include "store/tenant.h"
#include "watch/baseline.h"

namespace coffer::watch {

struct Alert {
  store::TenantId tenant = store::TenantId::None();
  std::string tool;
  std::string measure;   // MeasureName
  double value = 0;      // calls and denials of this hour; seconds; bytes
  double mean = 0;       // of the window before
  double deviation = 0;  // that it was judged by
  Nanos at{0};
  std::string words;  // one sentence for a person
};

// What one call was. Nothing: not measured, or it never ran.
struct CallMeasures {
  Nanos at{0};  // when it ended, since 1970
  uint64_t denials = 0;
  std::optional<Nanos> duration;
  std::optional<Nanos> cpu;
  std::optional<uint64_t> memory;
  std::optional<uint64_t> output;
};

class Anomalies {
 public:
  using Raised = std::function<void(const Alert&)>;

  // `store` outlives it. `raised` is called from inside Observe, without a lock.
  Anomalies(store::Store& store, AnomalyRules rules, Raised raised);

  // A call of a tool that exists has ended or was refused. Fails if the baseline cannot be read: then the call is not
  // counted, and nothing else happens.
  Status Observe(const store::TenantId& tenant, std::string_view tool, const CallMeasures& call);

  // Writes what came since the last time, and drops baselines that are not in use. For a timer, every few seconds, on a
  // worker; what could not be written is kept for the next time.
  Status Flush();

 private:
  struct Watched {
    std::array<Baseline, kMeasures> baselines;
    std::array<int64_t, kMeasures> alerted{};  // the hour of the last alert
    int64_t hour = 0;                          // of the newest sample
  };
  using Name = std::pair<store::TenantId, std::string>;  // tenant, tool
  struct Place {
    Name name;
    std::string measure;
    int64_t hour = 0;
    auto operator<=>(const Place&) const = default;
  };

  static void Load(Watched& watched, std::string_view word, const Bucket& bucket);
  Result<Watched*> Find(const Name& name, int64_t hour);
  // One measure of one call; an alert if it is one.
  std::optional<Alert> Note(const Name& name, Watched& watched, Measure measure, double value,
                            Nanos at);

  store::Store& store_;
  const AnomalyRules rules_;
  const Raised raised_;
  const int64_t window_;    // hours
  std::mutex flush_mutex_;  // of Flush as a whole
  std::mutex mutex_;        // of what follows
  std::map<Name, Watched> watched_;
  std::map<Place, Bucket> unwritten_;
  int64_t pruned_ = 0;  // the hour
};

}  // namespace coffer::watch
