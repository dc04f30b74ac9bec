// SPDX-License-Identifier: Apache-2.0
//
// API keys: who is asking, for which tenant, in which role.
//
// A key is "coffer_ID_SECRET" with 256 random bits of secret. The store keeps a salted SHA-256 of
// it (fast is enough: such a secret cannot be guessed) and the text is shown once. Secrets are
// compared in constant time. Expiry and revocation take effect with the next CheckKey. A reader of
// the state directory cannot make a key from it; a user who can write it can.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/page.h"
#include "store/role.h"
#include "store/tenant.h"

namespace coffer::store {

// What an agent may be called, wherever it comes from: 1 to 128 printable ASCII characters, no spaces. A token's agent
// has a narrower name (gateway/http/names.h).
bool IsAgentName(std::string_view text);

struct ApiKey {
  std::string id;  // 16 hex digits that sort by time; not secret
  TenantId tenant = TenantId::Local();
  Role role = Role::kAgent;
  std::string agent;         // the name it acts under
  bool all_tenants = false;  // sees those of others too; acts for its own
  std::string label;         // what it is for, in its maker's words
  std::string made_by;  // the key that asked for it, else "uid:N" or a token's id; "": not known
  Nanos created_at{0};
  std::optional<Nanos> expires_at;
  std::optional<Nanos> revoked_at;
  bool keep_running = false;          // once revoked: the calls that it made before go on
  std::optional<Nanos> last_used_at;  // to the minute
};

struct KeyRequest {
  Role role = Role::kAgent;
  std::string agent;         // 1 to 128 printable ASCII characters
  Nanos lifetime{0};         // 0: does not expire
  bool all_tenants = false;  // operators and auditors only
  std::string label;         // at most 200 bytes
  std::string made_by;
};

struct NewKey {
  ApiKey key;
  std::string text;  // the only time it is seen
};

// So many keys of a tenant can be valid at the same time. An operator's key that was stolen makes no more than these.
inline constexpr uint64_t kMostLivingKeys = 1000;
// The code of a refusal because there are so many.
inline constexpr const char* kKeyLimit = "key.limit";

// On disk when it returns. The tenant must exist.
Result<NewKey> CreateKey(Store& store, const TenantId& tenant, const KeyRequest& request);

// On a store that never had a key: makes the tenant and its key, once, however many ask at the same
// time. Nothing otherwise.
Result<std::optional<NewKey>> CreateFirstKey(Store& store, const TenantId& tenant,
                                             const KeyRequest& request);

enum class KeyState : uint8_t { kValid, kUnknown, kExpired, kRevoked };
struct KeyVerdict {
  KeyState state = KeyState::kUnknown;
  std::optional<ApiKey> key;  // unless unknown; whom to name in the log
};
// What a bearer presented. Only kValid lets the bearer in. Notes the use, at most once a minute.
Result<KeyVerdict> CheckKey(Store& store, std::string_view text);

// Newest first, with those that ended.
Result<Page<ApiKey>> ListKeys(Store& store, const TenantId& tenant, const PageRequest& page);
Result<Page<ApiKey>> ListKeys(Store& store, AllTenants, const PageRequest& page);

// A key by its id, whosever it is.
Result<std::optional<ApiKey>> FindKey(Store& store, AllTenants, std::string_view id);

// What becomes of the calls that a revoked key has made and that still run.
enum class RevokedCalls : uint8_t { kEnd, kKeepRunning };
// On disk when it returns. Refused if the tenant has no such key; revoking twice keeps the first
// time. Ending calls is the caller's, as with switches: SwitchGeneration (switches.h) changes, and
// then FindKey says what to do. Calls that were kept can be ended by revoking again.
Status RevokeKey(Store& store, const TenantId& tenant, std::string_view id,
                 RevokedCalls calls = RevokedCalls::kEnd);
// The same for the key, the keys that it has made, and those that they have made, all of one
// tenant, in one step. Returns the ids of the others that it revoked. A key that was pruned hands
// those that it made to its own maker.
Result<std::vector<std::string>> RevokeKeyAndMade(Store& store, const TenantId& tenant,
                                                  std::string_view id,
                                                  RevokedCalls calls = RevokedCalls::kEnd);

}  // namespace coffer::store
