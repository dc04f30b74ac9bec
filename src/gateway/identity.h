// SPDX-License-Identifier: Apache-2.0
//
// Who asks: the identity that the service finds for a credential, and the credential as the channel gave it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "gateway/answer.h"
#include "store/call_identity.h"
#include "store/role.h"

namespace coffer::gateway {

using store::Role;

struct Identity {
  store::TenantId tenant = store::TenantId::None();
  std::string agent;
  Role role = Role::kAgent;
  std::string key_id;  // which key, token id or uid it was: for the record
  std::string user;    // the person behind the agent, where a token names one; may be empty
  bool all_tenants =
      false;  // an operator or auditor who sees every tenant; what it makes is of its own
  Nanos expires_at{
      0};  // of a token, wall time; 0: an API key, whose expiry the service knows, or never
};

// The credential of a client: a bearer token, or the peer of a unix socket.
struct Credential {
  std::string bearer;  // an API key or a JWT, as sent
  // Of a JWT: checks its signature, issuer, audience and times, as of the request. From any thread, and better not the
  // loop's: a client without a credential decides how often it is done. Empty: the bearer is an API key.
  std::function<Answer<Identity>()> verify;
  struct Peer {
    uid_t uid;
    gid_t gid;
    pid_t pid;
  };
  std::optional<Peer> peer;  // SO_PEERCRED of a unix socket
  std::string address;       // "127.0.0.1", "unix": for the record
};

}  // namespace coffer::gateway
