// SPDX-License-Identifier: Apache-2.0
#include "daemon/standing.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/key.h"
#include "store/switches.h"

namespace coffer::daemon {
namespace {

using gateway::Refusal;
using gateway::RefusalKind;

// Of an identity that came with an API key; tokens and peers have ids of another shape.
Result<std::optional<store::ApiKey>> KeyOf(store::Store& store, const gateway::Identity& who) {
  if (who.key_id.find(':') != std::string::npos) {
    return std::optional<store::ApiKey>();
  }
  return store::FindKey(store, store::AllTenants{}, who.key_id);
}

Refusal Lapsed(std::string message) {
  return {RefusalKind::kUnauthenticated, "auth.key", std::move(message), "", {}, "", {}, {}};
}

}  // namespace

// Named by the kernel (DaemonService::AuthenticatePeer).
bool IsOwner(const gateway::Identity& who) {
  return who.all_tenants && who.key_id.starts_with("uid:");
}

std::optional<Refusal> FindLapse(store::Store& store, const gateway::Identity& who) {
  if (who.expires_at != Nanos(0) && WallTime() >= who.expires_at) {
    return Lapsed("this token has expired");
  }
  const Result<std::optional<store::ApiKey>> key = KeyOf(store, who);
  if (!key.ok()) {
    return RefusalOf(key.error());
  }
  if (*key && (*key)->revoked_at) {
    return Lapsed("this key was revoked");
  }
  if (*key && (*key)->expires_at && store.Now() >= *(*key)->expires_at) {
    return Lapsed("this key has expired");
  }
  return std::nullopt;
}

std::optional<Refusal> FindObstacle(store::Store& store, const gateway::Identity& who) {
  if (std::optional<Refusal> lapse = FindLapse(store, who)) {
    return lapse;
  }
  if (IsOwner(who)) {
    return std::nullopt;
  }
  const Result<std::optional<store::Switch>> stop = store::FindStop(store, who.tenant, who.agent);
  if (!stop.ok()) {
    return RefusalOf(stop.error());
  }
  if (!*stop) {
    return std::nullopt;
  }
  const bool tenants = (*stop)->kind == store::SwitchKind::kTenant;
  return Refusal{RefusalKind::kRefused,
                 "policy.switch",
                 fmt::format("this {} is stopped: it can read its record and nothing else",
                             tenants ? "tenant" : "agent"),
                 tenants ? "the owner of the host lifts it: coffer switch off tenant NAME"
                         : "another operator of the tenant lifts it",
                 {},
                 "",
                 {},
                 {}};
}

Result<std::optional<Nanos>> TimeLeft(store::Store& store, const gateway::Identity& who) {
  std::optional<Nanos> left;
  if (who.expires_at != Nanos(0)) {
    left = who.expires_at - WallTime();
  }
  TRY_ASSIGN(const std::optional<store::ApiKey> key, KeyOf(store, who));
  if (key && key->expires_at) {
    const Nanos of_key = *key->expires_at - store.Now();
    left = left ? std::min(*left, of_key) : of_key;
  }
  return left;
}

}  // namespace coffer::daemon
