// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/protected_resource.h"

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace coffer::gateway {
namespace {

constexpr std::string_view kEndpoint = "/mcp";
constexpr std::string_view kMetadata = "/.well-known/oauth-protected-resource/mcp";

std::string UrlOf(const Exchange& exchange, std::string_view path) {
  const std::string* const host = exchange.head.Find("Host");
  return (exchange.channel.tls ? "https://" : "http://") + (host == nullptr ? "" : *host) +
         std::string(path);
}

}  // namespace

std::string FormatProtectedResource(const Exchange& exchange) {
  const JwtVerifier& jwt = *exchange.api->config.jwt;
  const bool url = jwt.audience().starts_with("https://") || jwt.audience().starts_with("http://");
  return PrintJson({{"resource", url ? jwt.audience() : UrlOf(exchange, kEndpoint)},
                    {"authorization_servers", Json::array({jwt.issuer()})},
                    {"bearer_methods_supported", Json::array({"header"})},
                    {"resource_name", "Cofferdam"}});
}

void AddResourceMetadata(const Exchange& exchange, Problem* problem) {
  if (problem->status == 401 && exchange.api->config.jwt != nullptr && exchange.route != nullptr &&
      exchange.route->path == kEndpoint) {
    problem->authenticate += ", resource_metadata=\"" + UrlOf(exchange, kMetadata) + "\"";
  }
}

}  // namespace coffer::gateway
