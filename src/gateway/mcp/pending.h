// SPDX-License-Identifier: Apache-2.0
//
// A call that waits for a person, as MCP says it: "pending, decide there" (ADR 0046).
//
// The person decides at a URL of ours, where they are asked who they are. The agent's own client is
// the party being policed, so what it answers decides nothing: it only asks again. A modern client
// that takes questions at a URL gets `input_required` with one such question and a request state;
// all others get an error result that names the URL. No gate calls this yet: a call that would need
// a person is refused.
//
// A request state is made by us and comes back with the same call. It is authenticated, bound to
// the caller, the tool, the arguments and the approval, good until a time, and good once.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/json.h"

namespace coffer::gateway {

struct McpPending {
  std::string approval_id;
  std::string url;         // where it is decided
  std::string expires_at;  // as in receipts
  std::string message;     // for the person: what waits, and why
};

// Of the capabilities that a client has sent.
bool TakesQuestionsAtUrl(const Json& capabilities);

// For a modern client that does.
Json McpInputRequiredJson(const McpPending& pending, const std::string& request_state);
// For every other one: an error result, with the approval in structuredContent.
Json McpPendingErrorJson(const McpPending& pending);

class McpRequestStates {
 public:
  // Whose call, and of what.
  struct Binding {
    std::string caller;  // tenant and agent, from the channel
    std::string tool;
    std::string args_hash;
  };
  // With a key of its own: states of another process, or from before a restart, are worthless.
  McpRequestStates();

  std::string Make(const Binding& binding, const std::string& approval_id, Nanos expires_at) const;
  // The approval, if the state is ours, for this binding, in time, and was not redeemed before.
  std::optional<std::string> Redeem(std::string_view state, const Binding& binding, Nanos now);

  static constexpr size_t kMostRedeemed =
      100'000;  // kept until they expire; beyond, none is redeemed

 private:
  std::string Mac(std::string_view body, const Binding& binding) const;

  std::array<unsigned char, 32> key_{};
  std::map<std::string, Nanos, std::less<>> redeemed_;  // until when
};

}  // namespace coffer::gateway
