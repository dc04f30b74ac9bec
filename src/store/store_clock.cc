// SPDX-License-Identifier: Apache-2.0
#include "store/store_clock.h"

#include <algorithm>

#include "base/sys.h"

namespace coffer::store {
namespace {

constexpr Nanos kKeepEvery = std::chrono::minutes(10);
constexpr int64_t kFollow = 100;  // one part of it
constexpr Nanos kNeverRight = std::chrono::hours(24 * 366);

Status Write(Connection& db, const std::string& boot, Nanos uptime, Nanos time) {
  return db.Run(
      "INSERT INTO clock (only, boot, uptime, time) VALUES (1, ?1, ?2, ?3) "
      "ON CONFLICT (only) DO UPDATE SET boot = ?1, uptime = ?2, time = ?3",
      boot, uptime, time);
}

}  // namespace

Result<StoreClock> StoreClock::Open(Connection& db, ClockSources sources) {
  std::string boot = sources.boot_id;
  if (boot.empty()) {
    TRY_ASSIGN(boot, sys::ReadFile("/proc/sys/kernel/random/boot_id"));
  }
  TRY_ASSIGN(Transaction transaction, Transaction::Begin(db));
  Pair pair;
  bool known = false;
  {
    TRY_ASSIGN(Statement query, db.Prepare("SELECT boot, uptime, time FROM clock"));
    TRY_ASSIGN(const bool row, query.Step());
    if (row) {
      known = query.Text(0) == boot;
      pair = {query.Time(1), query.Time(2)};
    }
  }
  if (!known) {
    pair = {sources.uptime(), std::max(sources.wall(), pair.time)};
    TRY(Write(db, boot, pair.uptime, pair.time));
  }
  TRY(transaction.Commit());
  return StoreClock(std::move(sources), std::move(boot), pair);
}

Nanos StoreClock::At(const Pair& pair, Nanos uptime) const {
  const Nanos passed = std::max(uptime - pair.uptime, Nanos(0));
  const Nanos even = pair.time + passed;
  const Nanos ahead = sources_.wall() - even;
  // A clock that is a year off was never set, or has just been: following it by a hundredth would
  // take for ever.
  if (ahead > kNeverRight || ahead < -kNeverRight) {
    return even + ahead;
  }
  return even + std::clamp(ahead, -(passed / kFollow), passed / kFollow);
}

Nanos StoreClock::Now() const {
  const std::lock_guard lock(mutex_);
  return At(pair_, sources_.uptime());
}

Status StoreClock::Keep(Connection& db) {
  const std::lock_guard lock(mutex_);
  const Nanos uptime = sources_.uptime();
  if (uptime - pair_.uptime < kKeepEvery) {
    return {};
  }
  const Pair now{uptime, At(pair_, uptime)};
  TRY(Write(db, boot_, now.uptime, now.time));
  pair_ = now;
  return {};
}

}  // namespace coffer::store
