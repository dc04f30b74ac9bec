// SPDX-License-Identifier: Apache-2.0
#include "store/receivers.h"

#include <algorithm>

#include "store/core.h"

namespace coffer::store {

bool MatchesEvent(std::string_view pattern, std::string_view event) {
  if (pattern == "*" || pattern == event) {
    return true;
  }
  return pattern.ends_with(".*") && event.starts_with(pattern.substr(0, pattern.size() - 1));
}

bool KnownReceiver::Wants(std::string_view event) const {
  return events.empty() || std::any_of(events.begin(), events.end(), [&](const std::string& one) {
           return MatchesEvent(one, event);
         });
}

Status KeepReceivers(Store& store, AllTenants /*tag*/, std::span<const KnownReceiver> receivers) {
  return store.core().Write(Durability::kCommitted, [&](Connection& db) -> Status {
    TRY(db.Run("DELETE FROM receivers"));
    for (const KnownReceiver& receiver : receivers) {
      std::string lines;
      for (const std::string& event : receiver.events) {
        lines += event + "\n";
      }
      TRY(db.Run("INSERT INTO receivers (name, events) VALUES (?, ?)", receiver.name, lines));
    }
    return {};
  });
}

Result<std::vector<KnownReceiver>> ListReceivers(Store& store, AllTenants /*tag*/) {
  return store.core().Read([&](Connection& db) -> Result<std::vector<KnownReceiver>> {
    std::vector<KnownReceiver> receivers;
    TRY_ASSIGN(Statement query, db.Prepare("SELECT name, events FROM receivers ORDER BY name"));
    for (;;) {
      TRY_ASSIGN(const bool row, query.Step());
      if (!row) {
        return receivers;
      }
      KnownReceiver& one = receivers.emplace_back();
      one.name = query.Text(0);
      const std::string lines = query.Text(1);
      for (size_t at = 0; at < lines.size();) {
        const size_t end = std::min(lines.find('\n', at), lines.size());
        one.events.push_back(lines.substr(at, end - at));
        at = end + 1;
      }
    }
  });
}

}  // namespace coffer::store
