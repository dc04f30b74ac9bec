// SPDX-License-Identifier: Apache-2.0
//
// Rows that are read and changed inside the caller's transaction, each by the source that owns its
// table. A call's own row is in call_row.h. Only files of this folder include this header.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/breaker.h"
#include "store/call_files.h"
#include "store/core.h"
#include "store/session.h"
#include "store/sqlite.h"
#include "store/switches.h"
#include "store/tenant.h"

namespace coffer::store {

// ---- tenant.cc ----

// A TenantId from the store itself: it was checked when it went in.
struct TenantIdReader {
  static TenantId Read(const Statement& row, int column) { return TenantId(row.Text(column)); }
};

// Refused if there is no such tenant.
Status CheckTenantIn(Connection& db, const TenantId& tenant);
Result<Tenant> EnsureTenantIn(Connection& db, const TenantId& tenant, Nanos now);

// ---- breaker.cc, session.cc, switches.cc ----

// One that has not ended.
Result<std::optional<Pause>> FindPauseIn(Connection& db, const TenantId& tenant,
                                         std::string_view tool, std::string_view agent, Nanos now);

Result<std::optional<Session>> FindSessionIn(Connection& db, const TenantId& tenant,
                                             std::string_view id);
Result<std::optional<Switch>> FindSwitchIn(Connection& db, const TenantId& tenant,
                                           const SwitchSubject& subject);

// ---- call_files.cc ----

Status PutCallFile(Connection& db, const TenantId& tenant, std::string_view call_id,
                   std::string_view path, std::string_view bytes);
Status RemoveCallFiles(Connection& db, const TenantId& tenant, std::string_view call_id);
// In the order of their paths; none if there are none, or none any more. Reads and hashes every
// byte. `tenant` is a name as it stands in a row.
Result<std::vector<StoredFile>> HashCallFilesIn(Connection& db, std::string_view tenant,
                                                std::string_view call_id);

// ---- objects.cc ----

// An empty body is none.
Status KeepObject(const Core& core, Connection& db, const TenantId& tenant, std::string_view hash,
                  std::string_view body);
// Those that only calls used which are gone.
Status ForgetUnusedObjects(Connection& db, const TenantId& tenant);

// ---- outbox.cc, stored_bytes.cc ----

Status PutInOutbox(Connection& db, Nanos now, std::span<const std::string> receivers,
                   std::string_view tenant, std::string_view body);
Result<uint64_t> StoredBytesIn(Connection& db, const TenantId& tenant);

}  // namespace coffer::store
