// SPDX-License-Identifier: Apache-2.0
#include "store/breaker.h"

#include <fmt/format.h>

#include "base/quantity.h"
#include "store/core.h"
#include "store/rows.h"

namespace coffer::store {
namespace {

std::string Why(const BreakerRule& rule) {
  return fmt::format("{} {} denied something within {}", rule.denials,
                     rule.denials == 1 ? "call was" : "calls were", FormatDuration(rule.within));
}

Status Forget(Connection& db, const CallIdentity& call) {
  return db.Run("DELETE FROM denied_calls WHERE tenant = ? AND tool = ? AND agent = ?",
                call.tenant.name(), call.tool, call.agent);
}

Result<uint64_t> CountWithin(Connection& db, const CallIdentity& call, Nanos since, Nanos now) {
  TRY(
      db.Run("DELETE FROM denied_calls WHERE tenant = ? AND tool = ? AND agent = ? AND "
             "(at <= ? OR at > ?)",
             call.tenant.name(), call.tool, call.agent, since, now + kFarInTheFuture));
  TRY_ASSIGN(Statement query, db.Query("SELECT count(*) FROM denied_calls "
                                       "WHERE tenant = ? AND tool = ? AND agent = ?",
                                       call.tenant.name(), call.tool, call.agent));
  TRY_ASSIGN([[maybe_unused]] const bool row, query.Step());
  return query.Count(0);
}

Result<std::optional<Pause>> Count(Connection& db, const CallIdentity& call,
                                   const BreakerRule& rule, Nanos now) {
  TRY(CheckTenantIn(db, call.tenant));
  TRY_ASSIGN(const std::optional<Pause> paused,
             FindPauseIn(db, call.tenant, call.tool, call.agent, now));
  if (paused) {
    return std::optional<Pause>();
  }
  TRY(
      db.Run("INSERT OR IGNORE INTO denied_calls (tenant, tool, agent, call_id, at) "
             "VALUES (?, ?, ?, ?, ?)",
             call.tenant.name(), call.tool, call.agent, call.call_id, now));
  TRY_ASSIGN(const uint64_t denied, CountWithin(db, call, now - rule.within, now));
  if (denied < rule.denials) {
    return std::optional<Pause>();
  }
  Pause pause{call.tenant, call.tool, call.agent, Why(rule), now, now + rule.pause};
  TRY(
      db.Run("INSERT OR REPLACE INTO pauses (tenant, tool, agent, why, at, until) "
             "VALUES (?, ?, ?, ?, ?, ?)",
             pause.tenant.name(), pause.tool, pause.agent, pause.why, pause.at, pause.until));
  TRY(Forget(db, call));
  return std::optional(std::move(pause));
}

}  // namespace

Result<std::optional<Pause>> CountDenied(Store& store, const CallIdentity& call,
                                         const BreakerRule& rule) {
  if (rule.denials == 0) {
    return std::optional<Pause>();
  }
  Core& core = store.core();
  return core.Write(Durability::kCommitted,
                    [&](Connection& db) { return Count(db, call, rule, core.Now()); });
}

std::string PauseName(std::string_view tool, std::string_view agent) {
  return fmt::format("{}:{}", tool, agent);
}

Result<std::optional<Pause>> FindPauseIn(Connection& db, const TenantId& tenant,
                                         std::string_view tool, std::string_view agent, Nanos now) {
  TRY_ASSIGN(
      Statement query,
      db.Query("SELECT why, at, until FROM pauses WHERE tenant = ? AND tool = ? AND agent = ? AND "
               "until > ? AND until <= ?",
               tenant.name(), tool, agent, now, now + kFarInTheFuture));
  TRY_ASSIGN(const bool row, query.Step());
  if (!row) {
    return std::optional<Pause>();
  }
  return std::optional(Pause{tenant, std::string(tool), std::string(agent), query.Text(0),
                             query.Time(1), query.Time(2)});
}

}  // namespace coffer::store
