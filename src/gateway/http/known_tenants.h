// SPDX-License-Identifier: Apache-2.0
//
// Guesses the tenant of a new connection before the loop reads it, from the tokens that were accepted before.
//
// Many clients come from one address: all agents on the daemon's own host, all clients of a proxy.
// If such clients shared one pace (connection_pace.h), one tenant that opens thousands of
// connections would keep its neighbours out. So a connection whose first bytes show a token that
// has been accepted goes at the pace of its tenant. A tenant has one pace for all its addresses:
// two hundred machines would have the loop for themselves. Clients with other tokens, with none, or
// behind TLS, which cannot be read here, share the pace of their address.
//
// This decides when a connection is looked at and nothing else: each request is authenticated by
// itself. A token that is no longer accepted is forgotten at its next request, so that its holder
// cannot use up the turns of the tenant. Thread-safe.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "gateway/http/limits.h"

namespace coffer::gateway {

class KnownTenants {
 public:
  explicit KnownTenants(size_t most = 16384) : most_(most) {}

  // The token was accepted as the tenant's.
  void Remember(std::string_view token, std::string_view tenant);
  // The token was refused.
  void Forget(std::string_view token);
  // "" if the token is not known.
  std::string Find(std::string_view token) const;
  // The tenant of the request that `bytes` begin with; "" if it is not known, or the head is not complete.
  std::string FindInHead(std::string_view bytes, const HttpLimits& limits) const;

 private:
  const size_t most_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::string> tenants_;  // by the token's hash: tokens are secrets
};

}  // namespace coffer::gateway
