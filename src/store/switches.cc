// SPDX-License-Identifier: Apache-2.0
#include "store/switches.h"

#include "store/breaker.h"
#include "store/core.h"
#include "store/rows.h"

namespace coffer::store {
namespace {

constexpr std::string_view kKinds[] = {"tool",   "agent",         "session",
                                       "tenant", "disabled-tool", "breaker"};
constexpr std::string_view kEverybody;  // the tenant column of a switch for all

Switch ReadSwitch(const Statement& row) {
  Switch found;
  if (row.Text(0) != kEverybody) {
    found.tenant = TenantIdReader::Read(row, 0);
  }
  found.kind = FindSwitchKind(row.Text(1)).value_or(SwitchKind::kTenant);
  found.name = row.Text(2);
  found.on = row.Int(3) != 0;
  found.who = row.Text(4);
  found.why = row.Text(5);
  found.at = row.Time(6);
  return found;
}

struct Pair {
  std::string_view tool;
  std::string_view agent;
};

// Of a pause's name.
Pair PairOf(std::string_view name) {
  const size_t colon = name.find(':');
  return colon == std::string_view::npos ? Pair{}
                                         : Pair{name.substr(0, colon), name.substr(colon + 1)};
}

Status LiftPause(Store& store, std::string_view tenant, const SwitchChange& change) {
  if (change.on) {
    return Refused("policy.switch", "a breaker pauses by itself, when calls are denied",
                   "stop the agent, or the tool");
  }
  const Pair pair = PairOf(change.name);
  return store.core().Write(Durability::kOnDisk, [&](Connection& db) {
    return db.Run("DELETE FROM pauses WHERE tenant = ? AND tool = ? AND agent = ?", tenant,
                  pair.tool, pair.agent);
  });
}

Status Set(Store& store, std::string_view tenant, const SwitchChange& change) {
  if (change.kind == SwitchKind::kBreaker) {
    return LiftPause(store, tenant, change);
  }
  const std::string_view name = change.kind == SwitchKind::kTenant ? tenant : change.name;
  if (name.empty() && change.kind != SwitchKind::kTenant) {
    return Refused("policy.switch", "a switch needs the name of what it stops");
  }
  Core& core = store.core();
  return core.Write(Durability::kOnDisk, [&](Connection& db) -> Status {
    TRY(
        db.Run("INSERT INTO switches (tenant, kind, name, is_on, who, why, at) "
               "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET is_on = excluded.is_on, "
               "who = excluded.who, why = excluded.why, at = excluded.at",
               tenant, SwitchKindName(change.kind), name, static_cast<int>(change.on), change.who,
               change.why, core.Now()));
    return db.Run("UPDATE facts SET value = value + 1 WHERE name = 'switch_generation'");
  });
}

Result<std::vector<Switch>> ReadSwitches(Statement& query) {
  std::vector<Switch> switches;
  for (;;) {
    TRY_ASSIGN(const bool row, query.Step());
    if (!row) {
      return switches;
    }
    switches.push_back(ReadSwitch(query));
  }
}

// Behind `switches`: pauses of the tenant, or of all of them if it is empty.
Status AppendPauses(Connection& db, std::string_view tenant, Nanos now,
                    std::vector<Switch>& switches) {
  TRY_ASSIGN(Statement query,
             db.Query("SELECT tenant, tool, agent, why, at, until FROM pauses "
                      "WHERE (tenant = ?1 OR ?1 = '') AND until > ?2 AND until <= ?3 "
                      "ORDER BY tenant, tool, agent",
                      tenant, now, now + kFarInTheFuture));
  for (;;) {
    TRY_ASSIGN(const bool row, query.Step());
    if (!row) {
      return {};
    }
    switches.push_back({TenantIdReader::Read(query, 0), SwitchKind::kBreaker,
                        PauseName(query.Text(1), query.Text(2)), true, "breaker", query.Text(3),
                        query.Time(4), query.Time(5)});
  }
}

}  // namespace

std::string_view SwitchKindName(SwitchKind kind) { return kKinds[static_cast<size_t>(kind)]; }

std::optional<SwitchKind> FindSwitchKind(std::string_view name) {
  for (size_t i = 0; i < std::size(kKinds); ++i) {
    if (kKinds[i] == name) {
      return static_cast<SwitchKind>(i);
    }
  }
  return std::nullopt;
}

Status SetSwitch(Store& store, const TenantId& tenant, const SwitchChange& change) {
  return Set(store, tenant.name(), change);
}

Status SetSwitch(Store& store, AllTenants /*tag*/, const SwitchChange& change) {
  return Set(store, kEverybody, change);
}

Result<std::optional<Switch>> FindSwitchIn(Connection& db, const TenantId& tenant,
                                           const SwitchSubject& subject) {
  TRY_ASSIGN(Statement query,
             db.Query("SELECT tenant, kind, name, is_on, who, why, at FROM switches "
                      "WHERE tenant IN (?1, '') AND is_on = 1 AND ("
                      "kind = 'tenant' "
                      "OR (kind = 'tool' AND name = ?2) OR (kind = 'disabled-tool' AND name = ?2) "
                      "OR (kind = 'agent' AND name = ?3) "
                      "OR (kind = 'session' AND name = ?4 AND ?4 <> '')) LIMIT 1",
                      tenant.name(), subject.tool, subject.agent, subject.session));
  TRY_ASSIGN(const bool row, query.Step());
  return row ? std::optional<Switch>(ReadSwitch(query)) : std::nullopt;
}

Result<std::optional<Switch>> FindSwitch(Store& store, const TenantId& tenant,
                                         const SwitchSubject& subject) {
  return store.core().Read([&](Connection& db) { return FindSwitchIn(db, tenant, subject); });
}

Result<std::optional<Switch>> FindStop(Store& store, const TenantId& tenant,
                                       std::string_view agent) {
  return FindSwitch(store, tenant, {"", agent, ""});  // no tool has an empty name
}

Result<bool> IsSwitchedOn(Store& store, const TenantId& tenant, SwitchKind kind,
                          std::string_view name) {
  Core& core = store.core();
  return core.Read([&](Connection& db) -> Result<bool> {
    if (kind == SwitchKind::kBreaker) {
      const Pair pair = PairOf(name);
      TRY_ASSIGN(const std::optional<Pause> pause,
                 FindPauseIn(db, tenant, pair.tool, pair.agent, core.Now()));
      return pause.has_value();
    }
    TRY_ASSIGN(Statement query,
               db.Query("SELECT 1 FROM switches WHERE tenant = ? AND kind = ? AND name = ? AND "
                        "is_on = 1",
                        tenant.name(), SwitchKindName(kind),
                        kind == SwitchKind::kTenant ? std::string_view(tenant.name()) : name));
    return query.Step();
  });
}

Result<bool> AgentIsKnown(Store& store, const TenantId& tenant, std::string_view agent) {
  return store.core().Read([&](Connection& db) -> Result<bool> {
    TRY_ASSIGN(Statement query,
               db.Query("SELECT EXISTS (SELECT 1 FROM api_keys WHERE tenant = ?1 AND agent = ?2) "
                        "OR EXISTS (SELECT 1 FROM sessions WHERE tenant = ?1 AND agent = ?2) "
                        "OR EXISTS (SELECT 1 FROM calls WHERE tenant = ?1 AND agent = ?2)",
                        tenant.name(), agent));
    TRY_ASSIGN([[maybe_unused]] const bool row, query.Step());
    return query.Count(0) != 0;
  });
}

Result<std::vector<Switch>> ListSwitches(Store& store, const TenantId& tenant) {
  Core& core = store.core();
  return core.Read([&](Connection& db) -> Result<std::vector<Switch>> {
    // Who stopped all tenants, and why, is the operator's to know.
    TRY_ASSIGN(Statement query,
               db.Query("SELECT tenant, kind, name, is_on, iif(tenant = '', '', who), "
                        "iif(tenant = '', '', why), at FROM switches "
                        "WHERE tenant = ? OR (tenant = '' AND is_on = 1 AND kind IN "
                        "('tenant', 'tool', 'disabled-tool')) ORDER BY tenant, kind, name",
                        tenant.name()));
    TRY_ASSIGN(std::vector<Switch> switches, ReadSwitches(query));
    TRY(AppendPauses(db, tenant.name(), core.Now(), switches));
    return switches;
  });
}

Result<std::vector<Switch>> ListSwitches(Store& store, AllTenants /*tag*/) {
  Core& core = store.core();
  return core.Read([&](Connection& db) -> Result<std::vector<Switch>> {
    TRY_ASSIGN(Statement query, db.Prepare("SELECT tenant, kind, name, is_on, who, why, at "
                                           "FROM switches ORDER BY tenant, kind, name"));
    TRY_ASSIGN(std::vector<Switch> switches, ReadSwitches(query));
    TRY(AppendPauses(db, "", core.Now(), switches));
    return switches;
  });
}

Result<int64_t> SwitchGeneration(Store& store) {
  return store.core().Read([](Connection& db) {
    return db.Number("SELECT value FROM facts WHERE name = 'switch_generation'");
  });
}

}  // namespace coffer::store
