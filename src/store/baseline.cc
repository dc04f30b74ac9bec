// SPDX-License-Identifier: Apache-2.0
#include "store/baseline.h"

#include "store/core.h"

namespace coffer::store {

Status AddBaselines(Store& store, const TenantId& tenant, std::span<const BaselineHour> hours) {
  return store.core().Write(Durability::kCommitted, [&](Connection& db) -> Status {
    for (const BaselineHour& hour : hours) {
      TRY(
          db.Run("INSERT INTO baselines (tenant, tool, measure, hour, samples, total, squares) "
                 "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                 "samples = samples + excluded.samples, total = total + excluded.total, "
                 "squares = squares + excluded.squares",
                 tenant.name(), hour.tool, hour.measure, hour.hour, hour.samples, hour.total,
                 hour.squares));
    }
    return {};
  });
}

Result<std::vector<BaselineHour>> ReadBaselines(Store& store, const TenantId& tenant,
                                                std::string_view tool, int64_t since) {
  return store.core().Read([&](Connection& db) -> Result<std::vector<BaselineHour>> {
    TRY_ASSIGN(Statement query,
               db.Query("SELECT measure, hour, samples, total, squares FROM baselines "
                        "WHERE tenant = ? AND tool = ? AND hour >= ? ORDER BY measure, hour",
                        tenant.name(), tool, since));
    std::vector<BaselineHour> hours;
    for (;;) {
      TRY_ASSIGN(const bool row, query.Step());
      if (!row) {
        return hours;
      }
      hours.push_back({std::string(tool), query.Text(0), query.Int(1), query.Count(2),
                       query.Real(3), query.Real(4)});
    }
  });
}

Result<int64_t> PruneBaselines(Store& store, AllTenants /*tag*/, int64_t before) {
  return store.core().Write(Durability::kCommitted, [&](Connection& db) -> Result<int64_t> {
    TRY(db.Run("DELETE FROM baselines WHERE hour < ?", before));
    return db.changes();
  });
}

}  // namespace coffer::store
