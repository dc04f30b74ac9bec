// SPDX-License-Identifier: Apache-2.0
#include "gateway/mcp/pending.h"

#include <fmt/format.h>
#include <sodium/crypto_auth_hmacsha256.h>
#include <sodium/randombytes.h>
#include <sodium/utils.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "base/hex.h"

namespace coffer::gateway {
namespace {

constexpr size_t kMostState = 512;
constexpr size_t kNonce = 16;

// "EXPIRES.NONCE.APPROVAL.MAC", each part without a dot.
struct Parts {
  std::string_view body;  // all but the MAC
  std::string_view expires, approval, mac;
};

std::optional<Parts> Split(std::string_view state) {
  const size_t first = state.find('.');
  const size_t last = state.rfind('.');
  if (state.size() > kMostState || first == std::string_view::npos) {
    return std::nullopt;
  }
  const size_t second = state.find('.', first + 1);
  if (second == std::string_view::npos || second >= last) {
    return std::nullopt;
  }
  return Parts{state.substr(0, last), state.substr(0, first),
               state.substr(second + 1, last - second - 1), state.substr(last + 1)};
}

std::string PendingText(const McpPending& pending) {
  return fmt::format("{} A person decides at {} until {}. Send the same call again afterwards.",
                     pending.message, pending.url, pending.expires_at);
}

}  // namespace

bool TakesQuestionsAtUrl(const Json& capabilities) {
  const auto elicitation = capabilities.find("elicitation");
  if (elicitation == capabilities.end() || !elicitation->is_object()) {
    return false;
  }
  const auto url = elicitation->find("url");
  return url != elicitation->end() && url->is_object();
}

Json McpInputRequiredJson(const McpPending& pending, const std::string& request_state) {
  return {{"resultType", "input_required"},
          {"inputRequests",
           {{"approval",
             {{"method", "elicitation/create"},
              {"params",
               {{"mode", "url"},
                {"message", pending.message},
                {"url", pending.url},
                {"elicitationId", pending.approval_id}}}}}}},
          {"requestState", request_state}};
}

Json McpPendingErrorJson(const McpPending& pending) {
  return {
      {"content", Json::array({{{"type", "text"}, {"text", "[pending] " + PendingText(pending)}}})},
      {"structuredContent",
       {{"outcome", "gated"},
        {"stdout", ""},
        {"stderr", ""},
        {"truncated", false},
        {"approval",
         {{"id", pending.approval_id}, {"url", pending.url}, {"expires_at", pending.expires_at}}}}},
      {"isError", true}};
}

McpRequestStates::McpRequestStates() { ::randombytes_buf(key_.data(), key_.size()); }

std::string McpRequestStates::Mac(std::string_view body, const Binding& binding) const {
  crypto_auth_hmacsha256_state state;
  ::crypto_auth_hmacsha256_init(&state, key_.data(), key_.size());
  const auto add = [&state](std::string_view bytes) {
    // With its length: no two bindings are the same bytes.
    const std::string length = std::to_string(bytes.size()) + ":";
    for (const std::string_view part : {std::string_view(length), bytes}) {
      ::crypto_auth_hmacsha256_update(&state, reinterpret_cast<const unsigned char*>(part.data()),
                                      part.size());
    }
  };
  add(body);
  add(binding.caller);
  add(binding.tool);
  add(binding.args_hash);
  std::array<unsigned char, crypto_auth_hmacsha256_BYTES> mac{};
  ::crypto_auth_hmacsha256_final(&state, mac.data());
  return HexOf(mac.data(), mac.size());
}

std::string McpRequestStates::Make(const Binding& binding, const std::string& approval_id,
                                   Nanos expires_at) const {
  std::array<unsigned char, kNonce> nonce{};
  ::randombytes_buf(nonce.data(), nonce.size());
  const std::string body =
      fmt::format("{}.{}.{}", expires_at.count(), HexOf(nonce.data(), nonce.size()), approval_id);
  return body + "." + Mac(body, binding);
}

std::optional<std::string> McpRequestStates::Redeem(std::string_view state, const Binding& binding,
                                                    Nanos now) {
  const std::optional<Parts> parts = Split(state);
  if (!parts) {
    return std::nullopt;
  }
  const std::string mac = Mac(parts->body, binding);
  if (mac.size() != parts->mac.size() ||
      ::sodium_memcmp(mac.data(), parts->mac.data(), mac.size()) != 0) {
    return std::nullopt;
  }
  // From here on the bytes are ours.
  int64_t expires = 0;
  (void)std::from_chars(parts->expires.data(), parts->expires.data() + parts->expires.size(),
                        expires);
  if (now >= Nanos(expires)) {
    return std::nullopt;
  }
  std::erase_if(redeemed_, [now](const auto& one) { return now >= one.second; });
  if (redeemed_.size() >= kMostRedeemed || redeemed_.contains(mac)) {
    return std::nullopt;
  }
  redeemed_.emplace(mac, Nanos(expires));
  return std::string(parts->approval);
}

}  // namespace coffer::gateway
