// SPDX-License-Identifier: Apache-2.0
//
// A session: calls of one agent that share a workspace, a hard lifetime and budgets.
//
// It ends by hand, by time, or because its actions are spent; an ended one never comes back, and Admit refuses calls in
// it. The store says which calls were still under way, so that the caller can cancel them and remove the
// workspace; it does neither itself.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/page.h"
#include "store/quota.h"
#include "store/tenant.h"

namespace coffer::store {

struct SessionRequest {
  std::string agent;
  Nanos lifetime = std::chrono::minutes(30);
  Budget budget;                  // of the whole session; budget.calls is the action budget
  std::string label;              // its purpose, in the client's words; at most 200 bytes
  uint64_t bytes = 100ULL << 20;  // what its files may hold
  uint64_t tenant_bytes = 0;      // the open sessions of the tenant together; 0: not bounded
};

struct Session {
  std::string id;
  TenantId tenant = TenantId::Local();
  std::string agent;
  Nanos created_at{0};
  Nanos ends_at{0};
  std::optional<Nanos> ended_at;
  std::string end_reason;  // "ended by operator", "lifetime"
  Budget budget;
  Spent spent;
  std::string label;
  std::string workspace;  // a directory's name, not a path; unique on this host
  uint64_t bytes = 0;     // what its files may hold; 0: it was made before there was a bound
  bool enforced = false;  // by the kernel; otherwise it is watched
};

struct EndedSession {
  Session session;
  std::vector<std::string> open_calls;  // ids of calls that have not ended
  bool just_now = false;                // false: it had ended before
};

// On disk when it returns. The tenant must exist.
Result<Session> CreateSession(Store& store, const TenantId& tenant, const SessionRequest& request);

// Its workspace is a file system of that size from now on.
Status MarkEnforced(Store& store, const TenantId& tenant, std::string_view id);

Result<std::optional<Session>> FindSession(Store& store, const TenantId& tenant,
                                           std::string_view id);

Result<std::optional<Session>> FindSession(Store& store, AllTenants, std::string_view id);

enum class SessionFilter : uint8_t { kOpen, kAll };
Result<Page<Session>> ListSessions(Store& store, const TenantId& tenant, SessionFilter filter,
                                   const PageRequest& page);
Result<Page<Session>> ListSessions(Store& store, AllTenants, SessionFilter filter,
                                   const PageRequest& page);

// An open session ends `lifetime` from now instead, but not later than `oldest` after it began, and
// never earlier than it would have. Nothing if this tenant has no such open session. On disk when
// it returns.
Result<std::optional<Session>> ExtendSession(Store& store, const TenantId& tenant,
                                             std::string_view id, Nanos lifetime, Nanos oldest);

// Refused if there is none; ending twice keeps the first time and reason. On disk when it returns.
Result<EndedSession> EndSession(Store& store, const TenantId& tenant, std::string_view id,
                                std::string_view reason);

// Ends those whose time is over; for a timer.
Result<std::vector<EndedSession>> EndExpiredSessions(Store& store, AllTenants);

}  // namespace coffer::store
