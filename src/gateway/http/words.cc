// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/words.h"

#include <algorithm>
#include <array>

namespace coffer::gateway {
namespace {

constexpr std::array<std::string_view, 4> kStates = {"queued", "gated", "running", "finished"};
constexpr std::array<std::string_view, 5> kScopes = {"tool", "agent", "session", "tenant",
                                                     "breaker"};

}  // namespace

std::string_view StateName(CallProgress state) { return kStates[static_cast<size_t>(state)]; }

std::string_view ScopeName(SwitchTarget::Scope scope) {
  return kScopes[static_cast<size_t>(scope)];
}
std::optional<SwitchTarget::Scope> FindScope(std::string_view name) {
  const auto found = std::find(kScopes.begin(), kScopes.end(), name);
  return found == kScopes.end()
             ? std::nullopt
             : std::optional(static_cast<SwitchTarget::Scope>(found - kScopes.begin()));
}

}  // namespace coffer::gateway
