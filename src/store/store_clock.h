// SPDX-License-Identifier: Apache-2.0
//
// The store's time: what leases, windows, quotas and retention are counted by. It goes on evenly when the clock is set.
//
// It is the wall clock as it was when this store was first opened since the host started, plus the time since then by
// CLOCK_BOOTTIME, which cannot be set. The pair is kept in the database, so all processes have the same time and a
// restart of the daemon changes nothing. If the wall clock is set, this time follows it by at most one part in a
// hundred: a day is caught up in a hundred days. A clock that was set by more than a year had never been right, and is
// followed at once.
//
// After a restart of the host nothing but the wall clock knows how long it was off. It is believed,
// but time does not go back: a clock that stands before the last kept time is taken as that time. A
// virtual machine that was paused goes on where it was. Thread-safe.
#pragma once

#include <functional>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "store/sqlite.h"

namespace coffer::store {

struct ClockSources {
  std::function<Nanos()> wall = WallTime;
  std::function<Nanos()> uptime = BootTime;
  std::string boot_id;  // of this start of the host; empty: the kernel's
};

class StoreClock {
 public:
  // Reads what is kept, or keeps a first pair; in a transaction of its own.
  static Result<StoreClock> Open(Connection& db, ClockSources sources);
  StoreClock(StoreClock&& other) noexcept
      : sources_(std::move(other.sources_)), boot_(std::move(other.boot_)), pair_(other.pair_) {}

  Nanos Now() const;
  // Keeps the present pair if the kept one is old; for a timer.
  Status Keep(Connection& db);

 private:
  struct Pair {
    Nanos uptime{0};
    Nanos time{0};
  };
  StoreClock(ClockSources sources, std::string boot, Pair pair)
      : sources_(std::move(sources)), boot_(std::move(boot)), pair_(pair) {}
  Nanos At(const Pair& pair, Nanos uptime) const;

  ClockSources sources_;
  std::string boot_;
  mutable std::mutex mutex_;
  Pair pair_;
};

}  // namespace coffer::store
