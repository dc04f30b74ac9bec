// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/words.h"

#include <algorithm>
#include <array>

namespace coffer::gateway {
namespace {

constexpr std::array<std::string_view, 4> kRoles = {"agent", "approver", "operator", "auditor"};
constexpr std::array<std::string_view, 4> kStates = {"queued", "gated", "running", "finished"};
constexpr std::array<std::string_view, 5> kScopes = {"tool", "agent", "session", "tenant",
                                                     "breaker"};

template <typename T, size_t N>
std::optional<T> FindWord(const std::array<std::string_view, N>& words, std::string_view name) {
  const auto found = std::find(words.begin(), words.end(), name);
  return found == words.end() ? std::nullopt : std::optional(static_cast<T>(found - words.begin()));
}

}  // namespace

std::string_view RoleName(Role role) { return kRoles[static_cast<size_t>(role)]; }
std::optional<Role> FindRole(std::string_view name) { return FindWord<Role>(kRoles, name); }

std::string_view StateName(CallState state) { return kStates[static_cast<size_t>(state)]; }

std::string_view ScopeName(SwitchTarget::Scope scope) {
  return kScopes[static_cast<size_t>(scope)];
}
std::optional<SwitchTarget::Scope> FindScope(std::string_view name) {
  return FindWord<SwitchTarget::Scope>(kScopes, name);
}

}  // namespace coffer::gateway
