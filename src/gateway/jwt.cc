// SPDX-License-Identifier: Apache-2.0
#include "gateway/jwt.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json.h"
#include "gateway/http/names.h"

namespace coffer::gateway {
namespace {

constexpr size_t kMaxToken = 8192;

Error NotAccepted(std::string message) { return Refused("jwt.refused", std::move(message)); }

Result<Json> DecodeObject(std::string_view part) {
  TRY_ASSIGN(const std::string text, DecodeBase64Url(part));
  TRY_ASSIGN(Json json, ParseJson(text));
  if (!json.is_object()) {
    return NotAccepted("it is malformed");
  }
  return json;
}

std::optional<JwtAlgorithm> FindAlgorithm(const Json& header) {
  const auto alg = header.find("alg");
  if (alg == header.end() || !alg->is_string()) {
    return std::nullopt;
  }
  const auto name = alg->get<std::string>();
  if (name == "RS256") {
    return JwtAlgorithm::kRs256;
  }
  if (name == "ES256") {
    return JwtAlgorithm::kEs256;
  }
  return name == "EdDSA" ? std::optional(JwtAlgorithm::kEdDsa) : std::nullopt;
}

// A claim that is a string, "" otherwise.
std::string TextClaim(const Json& claims, const std::string& name) {
  const auto found = claims.find(name);
  return found != claims.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool HasAudience(const Json& claims, const std::string& audience) {
  const auto found = claims.find("aud");
  if (found == claims.end()) {
    return false;
  }
  if (found->is_string()) {
    return found->get<std::string>() == audience;
  }
  return found->is_array() && std::any_of(found->begin(), found->end(), [&](const Json& one) {
           return one.is_string() && one.get<std::string>() == audience;
         });
}

Status CheckTimes(const Json& claims, Nanos now, std::chrono::seconds leeway) {
  const double at = std::chrono::duration<double>(now).count();
  const auto slack = static_cast<double>(leeway.count());
  const auto time = [&](const char* name) -> std::optional<double> {
    const auto found = claims.find(name);
    return found != claims.end() && found->is_number() ? std::optional(found->get<double>())
                                                       : std::nullopt;
  };
  for (const char* name : {"exp", "nbf", "iat"}) {
    if (claims.contains(name) && (!time(name).has_value() || !std::isfinite(*time(name)))) {
      return NotAccepted(std::string(name) + " is not a time");
    }
  }
  if (!time("exp").has_value()) {
    return NotAccepted("it has no exp");
  }
  if (at >= *time("exp") + slack) {
    return NotAccepted("it has expired");
  }
  if (time("nbf").has_value() && at + slack < *time("nbf")) {
    return NotAccepted("it is not valid yet");
  }
  if (time("iat").has_value() && at + slack < *time("iat")) {
    return NotAccepted("it was issued in the future");
  }
  return {};
}

std::optional<Role> RoleOf(const JwtConfig& config, const std::string& value) {
  if (config.role_map.empty()) {
    return store::FindRole(value);
  }
  for (const auto& [name, role] : config.role_map) {
    if (name == value) {
      return role;
    }
  }
  return std::nullopt;
}

Result<Identity> IdentityOf(const JwtConfig& config, const Json& claims) {
  Identity identity;
  const Result<store::TenantId> tenant = store::TenantId::Parse(
      config.fixed_tenant.empty() ? TextClaim(claims, config.tenant_claim) : config.fixed_tenant);
  identity.agent = TextClaim(claims, config.agent_claim);
  if (!tenant.ok() || !IsName(identity.agent)) {
    return NotAccepted("the claims for tenant and agent are missing or not names");
  }
  identity.tenant = *tenant;
  const std::optional<Role> role = RoleOf(config, TextClaim(claims, config.role_claim));
  if (!role.has_value()) {
    return NotAccepted("the claim for the role is missing or unknown");
  }
  identity.role = *role;
  if (!config.user_claim.empty()) {
    const std::string user = TextClaim(claims, config.user_claim);
    identity.user = IsName(user) ? user : std::string();
  }
  const std::string id = TextClaim(claims, "jti");
  identity.key_id = "jwt:" + (IsName(id) ? id : identity.agent);
  // CheckTimes has found a number; one beyond what Nanos can hold is never reached.
  constexpr double kFar = 9e9;  // seconds: the year 2255
  identity.expires_at = std::chrono::seconds(
      static_cast<int64_t>(std::clamp(claims["exp"].get<double>(), 1.0, kFar)));
  return identity;
}

}  // namespace

bool LooksLikeJwt(std::string_view token) {
  return std::count(token.begin(), token.end(), '.') == 2;
}

Result<std::shared_ptr<const JwtVerifier>> JwtVerifier::Make(JwtConfig config) {
  if (config.issuer.empty() || config.audience.empty()) {
    return Refused("jwt.config", "tokens need an issuer and an audience",
                   "set both, or leave out the JWKS file");
  }
  if (!config.fixed_tenant.empty() && !store::TenantId::Parse(config.fixed_tenant).ok()) {
    return Refused("jwt.config", "the tenant of the issuer is not a tenant's name",
                   "1 to 63 of a-z, 0-9 and '-', not beginning with '-'");
  }
  TRY_ASSIGN(JwkSet keys, JwkSet::Parse(config.jwks));
  return std::shared_ptr<const JwtVerifier>(new JwtVerifier(std::move(config), std::move(keys)));
}

Result<Identity> JwtVerifier::Verify(std::string_view token, Nanos now) const {
  if (token.size() > kMaxToken || !LooksLikeJwt(token)) {
    return NotAccepted("it is malformed");
  }
  const size_t first = token.find('.');
  const size_t second = token.rfind('.');
  const Result<Json> header = DecodeObject(token.substr(0, first));
  const Result<std::string> signature = DecodeBase64Url(token.substr(second + 1));
  if (!header.ok() || !signature.ok()) {
    return NotAccepted("it is malformed");
  }
  const std::optional<JwtAlgorithm> algorithm = FindAlgorithm(*header);
  if (!algorithm.has_value()) {
    return NotAccepted("its algorithm is none of RS256, ES256, EdDSA");
  }
  if (header->contains("crit")) {
    return NotAccepted(
        "it demands extensions");  // RFC 7515 section 4.1.11: unknown extensions are refused
  }
  if (!keys_.Verify(*algorithm, TextClaim(*header, "kid"), token.substr(0, second), *signature)) {
    return NotAccepted("no key of the issuer made its signature");
  }
  const Result<Json> claims = DecodeObject(token.substr(first + 1, second - first - 1));
  if (!claims.ok()) {
    return NotAccepted("it is malformed");
  }
  if (TextClaim(*claims, "iss") != config_.issuer) {
    return NotAccepted("it is from another issuer");
  }
  if (!HasAudience(*claims, config_.audience)) {
    return NotAccepted("it is for another audience");
  }
  TRY(CheckTimes(*claims, now, config_.leeway));
  return IdentityOf(config_, *claims);
}

}  // namespace coffer::gateway
