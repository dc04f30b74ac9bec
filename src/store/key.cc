// SPDX-License-Identifier: Apache-2.0
#include "store/key.h"

#include <errno.h>
#include <fmt/format.h>
#include <sodium/utils.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>

#include "base/hash.h"
#include "base/hex.h"
#include "base/sys.h"
#include "store/core.h"
#include "store/read_page.h"
#include "store/rows.h"

namespace coffer::store {
namespace {

constexpr std::string_view kPrefix = "coffer_";
constexpr size_t kIdLength = 16;      // hex digits
constexpr size_t kSecretLength = 64;  // hex digits: 256 bits
constexpr Nanos kUseGrain = std::chrono::minutes(1);

#define KEY_COLUMNS                                                             \
  "id, tenant, role, agent, created_at, expires_at, revoked_at, last_used_at, " \
  "all_tenants, label, keep_running, made_by"

Result<std::string> RandomHex(size_t digits) {
  std::array<unsigned char, 32> bytes{};
  const long wanted = static_cast<long>(digits / 2);
  const long got = raw::Syscall(SYS_getrandom, raw::Arg(bytes.data()), wanted, 0);
  if (got != wanted) {
    return sys::ErrnoError("store.random", "the kernel gave no random bytes", got < 0 ? got : -EIO);
  }
  std::string text = HexOf(bytes.data(), digits / 2);
  ::sodium_memzero(bytes.data(), bytes.size());
  return text;
}

// A key has 256 random bits, so there is nothing to guess and no need for a slow hash.
std::string HashKey(std::string_view salt, std::string_view text) {
  return HashOf(std::string(salt) + ":" + std::string(text));
}

ApiKey ReadKey(const Statement& row) {
  ApiKey key;
  key.id = row.Text(0);
  key.tenant = TenantIdReader::Read(row, 1);
  key.role = FindRole(row.Text(2)).value_or(Role::kAgent);
  key.agent = row.Text(3);
  key.created_at = row.Time(4);
  key.expires_at = row.MaybeTime(5);
  key.revoked_at = row.MaybeTime(6);
  key.last_used_at = row.MaybeTime(7);
  key.all_tenants = row.Count(8) != 0;
  key.label = row.Text(9);
  key.keep_running = row.Count(10) != 0;
  key.made_by = row.Text(11);
  return key;
}

Status CheckAgentName(std::string_view agent) {
  if (!IsAgentName(agent)) {
    return Refused("policy.agent",
                   "an agent's name is 1 to 128 printable ASCII characters, no spaces");
  }
  return {};
}

Status CheckNumberOfKeys(Connection& db, const TenantId& tenant, Nanos now) {
  TRY_ASSIGN(Statement query,
             db.Query("SELECT count(*) FROM api_keys WHERE tenant = ? AND revoked_at IS NULL AND "
                      "(expires_at IS NULL OR expires_at > ?)",
                      tenant.name(), now));
  TRY_ASSIGN([[maybe_unused]] const bool row, query.Step());
  const uint64_t living = query.Count(0);
  if (living >= kMostLivingKeys) {
    return Refused(kKeyLimit,
                   fmt::format("the tenant has {} valid keys, as many as it can", living),
                   "revoke keys that are not used any more: GET /v1/keys, coffer key list");
  }
  return {};
}

// In the transaction that makes the key: one that was revoked since its request was let in leaves no key behind.
Status CheckMaker(Connection& db, const std::string& maker) {
  TRY_ASSIGN(Statement query,
             db.Query("SELECT 1 FROM api_keys WHERE id = ? AND revoked_at IS NOT NULL", maker));
  TRY_ASSIGN(const bool revoked, query.Step());
  return revoked ? Refused("policy.key", "the key that asks for another was revoked") : Status();
}

Result<NewKey> InsertKey(Connection& db, const TenantId& tenant, const KeyRequest& request,
                         Nanos now) {
  TRY(CheckAgentName(request.agent));
  TRY(CheckTenantIn(db, tenant));
  if (request.all_tenants && request.role != Role::kOperator && request.role != Role::kAuditor) {
    return Refused("policy.key", "only operators and auditors may see all tenants",
                   "give it the role operator or auditor");
  }
  if (request.label.size() > 200) {
    return Refused("policy.key", "a key's label has at most 200 bytes");
  }
  TRY(CheckMaker(db, request.made_by));
  TRY(CheckNumberOfKeys(db, tenant, now));
  NewKey made;
  // Seconds first, so that ids sort by time.
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  TRY_ASSIGN(const std::string random, RandomHex(kIdLength - 8));
  made.key.id = fmt::format("{:08x}{}", static_cast<uint32_t>(seconds), random);
  TRY_ASSIGN(const std::string secret, RandomHex(kSecretLength));
  TRY_ASSIGN(const std::string salt, RandomHex(32));
  made.text = std::string(kPrefix) + made.key.id + "_" + secret;
  made.key.tenant = tenant;
  made.key.role = request.role;
  made.key.agent = request.agent;
  made.key.all_tenants = request.all_tenants;
  made.key.label = request.label;
  made.key.made_by = request.made_by;
  made.key.created_at = now;
  if (request.lifetime > Nanos(0)) {
    made.key.expires_at = now + request.lifetime;
  }
  TRY(
      db.Run("INSERT INTO api_keys (id, tenant, role, agent, salt, hash, created_at, expires_at, "
             "all_tenants, label, made_by) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
             made.key.id, tenant.name(), RoleName(request.role), request.agent, salt,
             HashKey(salt, made.text), now, made.key.expires_at,
             static_cast<int>(request.all_tenants), request.label, request.made_by));
  TRY(db.Run("UPDATE facts SET value = 1 WHERE name = 'first_key_made'"));
  return made;
}

constexpr const char* kNewGeneration =
    "UPDATE facts SET value = value + 1 WHERE name = 'switch_generation'";

Status RevokeIn(Connection& db, const TenantId& tenant, std::string_view id, RevokedCalls calls,
                Nanos now) {
  TRY(
      db.Run("UPDATE api_keys SET revoked_at = coalesce(revoked_at, ?), keep_running = ? "
             "WHERE tenant = ? AND id = ?",
             now, static_cast<int>(calls == RevokedCalls::kKeepRunning), tenant.name(), id));
  if (db.changes() != 1) {
    return Refused("policy.key", "there is no such key", "coffer key list shows their ids");
  }
  return {};
}

// What the key has made and what those have made that is not revoked yet.
Result<std::vector<std::string>> MadeBy(Connection& db, const TenantId& tenant,
                                        std::string_view id) {
  TRY_ASSIGN(Statement query,
             db.Query("WITH RECURSIVE made (id) AS (VALUES (?2) UNION SELECT key.id FROM api_keys "
                      "AS key JOIN made ON key.made_by = made.id WHERE key.tenant = ?1) "
                      "SELECT id FROM api_keys WHERE tenant = ?1 AND revoked_at IS NULL AND "
                      "id <> ?2 AND id IN made",
                      tenant.name(), id));
  std::vector<std::string> made;
  while (true) {
    TRY_ASSIGN(const bool row, query.Step());
    if (!row) {
      return made;
    }
    made.push_back(query.Text(0));
  }
}

}  // namespace

bool IsAgentName(std::string_view text) {
  return !text.empty() && text.size() <= 128 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 127; });
}

Result<NewKey> CreateKey(Store& store, const TenantId& tenant, const KeyRequest& request) {
  Core& core = store.core();
  return core.Write(Durability::kOnDisk,
                    [&](Connection& db) { return InsertKey(db, tenant, request, core.Now()); });
}

Result<std::optional<NewKey>> CreateFirstKey(Store& store, const TenantId& tenant,
                                             const KeyRequest& request) {
  Core& core = store.core();
  return core.Write(Durability::kOnDisk, [&](Connection& db) -> Result<std::optional<NewKey>> {
    TRY_ASSIGN(const int64_t made,
               db.Number("SELECT value FROM facts WHERE name = 'first_key_made'"));
    if (made != 0) {
      return std::optional<NewKey>();
    }
    TRY_ASSIGN([[maybe_unused]] const Tenant owner, EnsureTenantIn(db, tenant, core.Now()));
    TRY_ASSIGN(NewKey key, InsertKey(db, tenant, request, core.Now()));
    return std::optional<NewKey>(std::move(key));
  });
}

Result<KeyVerdict> CheckKey(Store& store, std::string_view text) {
  const size_t secret_at = kPrefix.size() + kIdLength + 1;
  if (text.size() != secret_at + kSecretLength || !text.starts_with(kPrefix) ||
      text[secret_at - 1] != '_') {
    return KeyVerdict{};
  }
  Core& core = store.core();
  const Nanos now = core.Now();
  TRY_ASSIGN(KeyVerdict verdict, core.Read([&](Connection& db) -> Result<KeyVerdict> {
    TRY_ASSIGN(Statement query,
               db.Query("SELECT " KEY_COLUMNS ", salt, hash FROM api_keys WHERE id = ?",
                        text.substr(kPrefix.size(), kIdLength)));
    TRY_ASSIGN(const bool row, query.Step());
    if (!row) {
      return KeyVerdict{};
    }
    const std::string presented = HashKey(query.Text(12), text);
    const std::string stored = query.Text(13);
    if (presented.size() != stored.size() ||
        // Takes the same time wherever the two differ, so it tells nothing about the hash.
        ::sodium_memcmp(presented.data(), stored.data(), stored.size()) != 0) {
      return KeyVerdict{};
    }
    KeyVerdict found{KeyState::kValid, ReadKey(query)};
    if (found.key->revoked_at.has_value()) {
      found.state = KeyState::kRevoked;
    } else if (found.key->expires_at.has_value() && now >= *found.key->expires_at) {
      found.state = KeyState::kExpired;
    }
    return found;
  }));
  if (verdict.state == KeyState::kValid &&
      now - verdict.key->last_used_at.value_or(Nanos(0)) >= kUseGrain) {
    verdict.key->last_used_at = now;
    // A full disk must not keep an operator out.
    (void)core
        .Write(Durability::kCommitted,
               [&](Connection& db) {
                 return db.Run("UPDATE api_keys SET last_used_at = ? WHERE id = ?", now,
                               verdict.key->id);
               })
        .ok();
  }
  return verdict;
}

Result<Page<ApiKey>> ListKeys(Store& store, const TenantId& tenant, const PageRequest& page) {
  return store.core().Read([&](Connection& db) -> Result<Page<ApiKey>> {
    TRY_ASSIGN(Statement query,
               db.Query("SELECT " KEY_COLUMNS " FROM api_keys WHERE tenant = ? AND id < ? "
                        "ORDER BY id DESC LIMIT ?",
                        tenant.name(), page.Before(), page.Rows() + 1));
    return ReadPage<ApiKey>(query, page.Rows(), ReadKey);
  });
}

Result<Page<ApiKey>> ListKeys(Store& store, AllTenants /*tag*/, const PageRequest& page) {
  return store.core().Read([&](Connection& db) -> Result<Page<ApiKey>> {
    TRY_ASSIGN(Statement query, db.Query("SELECT " KEY_COLUMNS
                                         " FROM api_keys WHERE id < ? ORDER BY id DESC LIMIT ?",
                                         page.Before(), page.Rows() + 1));
    return ReadPage<ApiKey>(query, page.Rows(), ReadKey);
  });
}

Result<std::optional<ApiKey>> FindKey(Store& store, AllTenants /*tag*/, std::string_view id) {
  return store.core().Read([&](Connection& db) -> Result<std::optional<ApiKey>> {
    TRY_ASSIGN(Statement query, db.Query("SELECT " KEY_COLUMNS " FROM api_keys WHERE id = ?", id));
    TRY_ASSIGN(const bool row, query.Step());
    return row ? std::optional<ApiKey>(ReadKey(query)) : std::nullopt;
  });
}

Status RevokeKey(Store& store, const TenantId& tenant, std::string_view id, RevokedCalls calls) {
  Core& core = store.core();
  return core.Write(Durability::kOnDisk, [&](Connection& db) -> Status {
    TRY(RevokeIn(db, tenant, id, calls, core.Now()));
    return db.Run(kNewGeneration);
  });
}

Result<std::vector<std::string>> RevokeKeyAndMade(Store& store, const TenantId& tenant,
                                                  std::string_view id, RevokedCalls calls) {
  using Ids = std::vector<std::string>;
  Core& core = store.core();
  return core.Write(Durability::kOnDisk, [&](Connection& db) -> Result<Ids> {
    TRY(RevokeIn(db, tenant, id, calls, core.Now()));
    TRY_ASSIGN(const Ids made, MadeBy(db, tenant, id));
    for (const std::string& one : made) {
      TRY(RevokeIn(db, tenant, one, calls, core.Now()));
    }
    TRY(db.Run(kNewGeneration));
    return made;
  });
}

}  // namespace coffer::store
