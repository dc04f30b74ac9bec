// SPDX-License-Identifier: Apache-2.0
#include "store/session.h"

#include <fmt/format.h>

#include "base/ids.h"
#include "store/core.h"
#include "store/read_page.h"
#include "store/rows.h"

namespace coffer::store {
namespace {

#define SESSION_QUERY                                                                   \
  "SELECT s.id, s.tenant, s.agent, s.created_at, s.ends_at, s.ended_at, s.end_reason, " \
  "s.workspace, s.most_calls, s.most_retries, s.most_cpu, s.most_bytes_out, "           \
  "u.calls, u.retries, u.cpu, u.bytes_out, s.label, "                                   \
  "s.most_bytes, s.enforced FROM sessions s LEFT JOIN spent u "                         \
  "ON u.tenant = s.tenant AND u.scope = 'session' AND u.name = s.id "

Session ReadSession(const Statement& row) {
  Session session;
  session.id = row.Text(0);
  session.tenant = TenantIdReader::Read(row, 1);
  session.agent = row.Text(2);
  session.created_at = row.Time(3);
  session.ends_at = row.Time(4);
  session.ended_at = row.MaybeTime(5);
  session.end_reason = row.Text(6);
  session.workspace = row.Text(7);
  session.budget = {row.Count(8), row.Count(9), row.Time(10), row.Count(11), Nanos(0)};
  session.label = row.Text(16);
  session.bytes = row.Count(17);
  session.enforced = row.Count(18) != 0;
  session.spent = {row.Count(12), row.Count(13), row.Time(14), row.Count(15)};
  return session;
}

Result<EndedSession> EndInTransaction(Connection& db, Session session, std::string_view reason,
                                      Nanos now) {
  const bool just_now = !session.ended_at.has_value();
  if (just_now) {
    session.ended_at = now;
    session.end_reason = reason;
    TRY(db.Run("UPDATE sessions SET ended_at = ?, end_reason = ? WHERE tenant = ? AND id = ?", now,
               reason, session.tenant.name(), session.id));
  }
  EndedSession ended{std::move(session), {}, just_now};
  TRY_ASSIGN(Statement open, db.Query("SELECT id FROM calls INDEXED BY calls_open "
                                      "WHERE tenant = ? AND session_id = ? AND finished_at IS NULL",
                                      ended.session.tenant.name(), ended.session.id));
  for (;;) {
    TRY_ASSIGN(const bool row, open.Step());
    if (!row) {
      return ended;
    }
    ended.open_calls.push_back(open.Text(0));
  }
}

// A session counts with all that it may hold: what is promised is there when it is used.
Status CheckRoom(Connection& db, const TenantId& tenant, const SessionRequest& request, Nanos now) {
  if (request.tenant_bytes == 0) {
    return {};
  }
  TRY_ASSIGN(Statement query,
             db.Query("SELECT coalesce(sum(most_bytes), 0), count(*) FROM sessions "
                      "WHERE tenant = ? AND ended_at IS NULL AND ends_at > ?",
                      tenant.name(), now));
  TRY_ASSIGN([[maybe_unused]] const bool row, query.Step());
  if (query.Count(0) + request.bytes > request.tenant_bytes) {
    return Refused("policy.storage",
                   fmt::format("the tenant's {} open sessions may hold {} bytes; another {} would "
                               "pass its limit of {}",
                               query.Count(1), query.Count(0), request.bytes, request.tenant_bytes),
                   "end a session, or let the operator raise storage.tenant");
  }
  return {};
}

// No session list shows one as open whose time is over, whether or not the timer has come by.
constexpr const char* kListOfTenant = SESSION_QUERY
    "WHERE s.tenant = ?1 AND s.id < ?2 AND (?3 OR (s.ended_at IS NULL AND s.ends_at > ?4)) "
    "ORDER BY s.id DESC LIMIT ?5";
constexpr const char* kListOfAll = SESSION_QUERY
    "WHERE s.id < ?1 AND (?2 OR (s.ended_at IS NULL AND s.ends_at > ?3)) "
    "ORDER BY s.id DESC LIMIT ?4";

}  // namespace

Result<std::optional<Session>> FindSessionIn(Connection& db, const TenantId& tenant,
                                             std::string_view id) {
  TRY_ASSIGN(Statement query,
             db.Query(SESSION_QUERY "WHERE s.tenant = ? AND s.id = ?", tenant.name(), id));
  TRY_ASSIGN(const bool row, query.Step());
  return row ? std::optional<Session>(ReadSession(query)) : std::nullopt;
}

Result<Session> CreateSession(Store& store, const TenantId& tenant, const SessionRequest& request) {
  if (request.lifetime <= Nanos(0) || request.lifetime > std::chrono::hours(24 * 366)) {
    return Refused("policy.session", "a session needs a lifetime of at most 366 days");
  }
  if (request.label.size() > 200) {
    return Refused("policy.session", "a session's label has at most 200 bytes");
  }
  Core& core = store.core();
  const Nanos now = core.Now();
  Session session;
  // Retention compares the id with a time of this clock, not of the wall's.
  TRY_ASSIGN(session.id, NewId(now));
  session.tenant = tenant;
  session.agent = request.agent;
  session.label = request.label;
  session.created_at = now;
  session.ends_at = now + request.lifetime;
  session.budget = request.budget;
  session.budget.period = Nanos(0);
  session.workspace = "session-" + session.id;
  session.bytes = request.bytes;
  const Status written = core.Write(Durability::kOnDisk, [&](Connection& db) -> Status {
    TRY(CheckTenantIn(db, tenant));
    TRY(CheckRoom(db, tenant, request, now));
    return db.Run(
        "INSERT INTO sessions (tenant, id, agent, created_at, ends_at, workspace, most_calls, "
        "most_retries, most_cpu, most_bytes_out, label, most_bytes) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        tenant.name(), session.id, session.agent, session.created_at, session.ends_at,
        session.workspace, session.budget.calls, session.budget.retries, session.budget.cpu,
        session.budget.bytes_out, session.label, session.bytes);
  });
  TRY(written);
  return session;
}

Status MarkEnforced(Store& store, const TenantId& tenant, std::string_view id) {
  return store.core().Write(Durability::kOnDisk, [&](Connection& db) {
    return db.Run("UPDATE sessions SET enforced = 1 WHERE tenant = ? AND id = ?", tenant.name(),
                  id);
  });
}

Result<std::optional<Session>> FindSession(Store& store, const TenantId& tenant,
                                           std::string_view id) {
  return store.core().Read([&](Connection& db) { return FindSessionIn(db, tenant, id); });
}

Result<std::optional<Session>> FindSession(Store& store, AllTenants /*tag*/, std::string_view id) {
  return store.core().Read([&](Connection& db) -> Result<std::optional<Session>> {
    TRY_ASSIGN(
        Statement query,
        db.Query(SESSION_QUERY "WHERE s.tenant IN (SELECT name FROM tenants) AND s.id = ?", id));
    TRY_ASSIGN(const bool row, query.Step());
    return row ? std::optional<Session>(ReadSession(query)) : std::nullopt;
  });
}

Result<Page<Session>> ListSessions(Store& store, const TenantId& tenant, SessionFilter filter,
                                   const PageRequest& page) {
  Core& core = store.core();
  return core.Read([&](Connection& db) -> Result<Page<Session>> {
    TRY_ASSIGN(Statement query, db.Query(kListOfTenant, tenant.name(), page.Before(),
                                         static_cast<int>(filter == SessionFilter::kAll),
                                         core.Now(), page.Rows() + 1));
    return ReadPage<Session>(query, page.Rows(), ReadSession);
  });
}

Result<Page<Session>> ListSessions(Store& store, AllTenants /*tag*/, SessionFilter filter,
                                   const PageRequest& page) {
  Core& core = store.core();
  return core.Read([&](Connection& db) -> Result<Page<Session>> {
    TRY_ASSIGN(Statement query,
               db.Query(kListOfAll, page.Before(), static_cast<int>(filter == SessionFilter::kAll),
                        core.Now(), page.Rows() + 1));
    return ReadPage<Session>(query, page.Rows(), ReadSession);
  });
}

Result<std::optional<Session>> ExtendSession(Store& store, const TenantId& tenant,
                                             std::string_view id, Nanos lifetime, Nanos oldest) {
  Core& core = store.core();
  return core.Write(Durability::kOnDisk, [&](Connection& db) -> Result<std::optional<Session>> {
    const Nanos now = core.Now();
    TRY(
        db.Run("UPDATE sessions SET ends_at = max(ends_at, min(?3, created_at + "
               "?4)) WHERE tenant = ?1 AND id = ?2 AND ended_at IS NULL AND "
               "ends_at > ?5",
               tenant.name(), id, now + lifetime, oldest, now));
    if (db.changes() == 0) {
      return std::optional<Session>();
    }
    return FindSessionIn(db, tenant, id);
  });
}

Result<EndedSession> EndSession(Store& store, const TenantId& tenant, std::string_view id,
                                std::string_view reason) {
  Core& core = store.core();
  return core.Write(Durability::kOnDisk, [&](Connection& db) -> Result<EndedSession> {
    TRY_ASSIGN(std::optional<Session> session, FindSessionIn(db, tenant, id));
    if (!session.has_value()) {
      return Refused("policy.session", "there is no such session",
                     "coffer sessions list shows their ids");
    }
    return EndInTransaction(db, std::move(*session), reason, core.Now());
  });
}

Result<std::vector<EndedSession>> EndExpiredSessions(Store& store, AllTenants /*tag*/) {
  Core& core = store.core();
  using Ended = std::vector<EndedSession>;
  const Nanos now = core.Now();
  TRY_ASSIGN(const bool any, core.Read([&](Connection& db) -> Result<bool> {
    TRY_ASSIGN(Statement query, db.Query("SELECT 1 FROM sessions INDEXED BY sessions_open "
                                         "WHERE ended_at IS NULL AND ends_at <= ? LIMIT 1",
                                         now));
    return query.Step();
  }));
  if (!any) {  // the usual answer costs no write
    return Ended();
  }
  return core.Write(Durability::kOnDisk, [&](Connection& db) -> Result<Ended> {
    std::vector<Session> over;
    {
      TRY_ASSIGN(Statement query,
                 db.Query(SESSION_QUERY "WHERE s.ended_at IS NULL AND s.ends_at <= ?", now));
      for (;;) {
        TRY_ASSIGN(const bool row, query.Step());
        if (!row) {
          break;
        }
        over.push_back(ReadSession(query));
      }
    }
    Ended ended;
    for (Session& session : over) {
      TRY_ASSIGN(EndedSession one, EndInTransaction(db, std::move(session), "lifetime", now));
      ended.push_back(std::move(one));
    }
    return ended;
  });
}

}  // namespace coffer::store
