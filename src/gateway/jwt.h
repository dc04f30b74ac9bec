// SPDX-License-Identifier: Apache-2.0
//
// Bearer tokens of an identity provider (JWT, RFC 7519, checked as RFC 8725 advises), from token to Identity.
//
// Signature first, with a key of the configured JWKS whose type fixes the algorithm; then issuer, audience and times;
// then the claims that the configuration maps to tenant, agent and role. Missing is refused, never defaulted. `none`
// and HS* do not exist here. It does not know of revocation: keep tokens short-lived, or end the agent by its switch.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "gateway/jwks.h"
#include "gateway/service.h"

namespace coffer::gateway {

struct JwtConfig {
  std::string issuer;    // equals `iss`
  std::string audience;  // is `aud`, or one of them
  std::string jwks;      // the text of the JWKS file
  std::string tenant_claim = "tenant";
  std::string fixed_tenant;  // instead of a claim: the issuer serves one tenant
  std::string agent_claim = "sub";
  std::string role_claim = "role";
  std::string user_claim;  // "": none
  std::vector<std::pair<std::string, Role>>
      role_map;                     // a claim's value to a role; empty: the value is a role's name
  std::chrono::seconds leeway{30};  // between the clocks
};

// Two dots: an API key has none.
bool LooksLikeJwt(std::string_view token);

class JwtVerifier {
 public:
  static Result<std::shared_ptr<const JwtVerifier>> Make(JwtConfig config);

  // Whose tokens, and for whom they must be made.
  const std::string& issuer() const { return config_.issuer; }
  const std::string& audience() const { return config_.audience; }

  // `now` is wall time. The message of an error is short and safe to show to the sender of the token.
  Result<Identity> Verify(std::string_view token, Nanos now) const;

 private:
  JwtVerifier(JwtConfig config, JwkSet keys) : config_(std::move(config)), keys_(std::move(keys)) {}
  JwtConfig config_;
  JwkSet keys_;
};

}  // namespace coffer::gateway
