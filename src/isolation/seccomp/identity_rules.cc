// SPDX-License-Identifier: Apache-2.0
#include "isolation/seccomp/identity_rules.h"

#include <errno.h>

#include <utility>

namespace coffer::isolation {

void AddIdentityRules(Tier tier, FilterOptions options, Profile* profile) {
  if (tier < Tier::kDefault) {
    return;
  }
  constexpr uint64_t kUnchanged = kLowHalf;  // -1 leaves an id as it is
  static constexpr std::pair<const char*, uint8_t> kCalls[] = {
      {"setuid", 1},   {"setgid", 1},    {"setreuid", 2},
      {"setregid", 2}, {"setresuid", 3}, {"setresgid", 3},
  };
  for (const auto& [name, ids] : kCalls) {
    if (options.own_id == kEveryId) {
      profile->rules.push_back({name, kAllow, {}});
      continue;
    }
    // One rule for each choice of the own id or -1 in every argument; each bit of `choice` is one argument.
    for (unsigned choice = 0; choice < 1U << ids; ++choice) {
      Rule rule = {name, kAllow, {}};
      for (uint8_t arg = 0; arg < ids; ++arg) {
        const uint64_t id = (choice >> arg & 1) != 0 ? kUnchanged : options.own_id;
        rule.conditions.push_back({arg, Compare::kEqual, id, kLowHalf});
      }
      profile->rules.push_back(std::move(rule));
    }
    profile->rules.push_back({name, FailWith(EPERM), {}});
  }
}

}  // namespace coffer::isolation
