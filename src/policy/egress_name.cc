// SPDX-License-Identifier: Apache-2.0
#include "policy/egress_name.h"

#include <fmt/format.h>

#include <algorithm>

namespace coffer::policy {
namespace {

// Whether a rule that denies covers all of `range` at this host.
bool IsDenied(std::span<const EgressRule> rules, const HostName& host, const PortRange& range) {
  return std::any_of(rules.begin(), rules.end(), [&](const EgressRule& rule) {
    return rule.deny && rule.host.Covers(host) &&
           std::any_of(rule.ports.begin(), rule.ports.end(), [&](const PortRange& denied) {
             return denied.Contains(range.first) && denied.Contains(range.last);
           });
  });
}

}  // namespace

EgressVerdict JudgeName(std::span<const EgressRule> rules, const HostName& name) {
  EgressVerdict verdict;
  verdict.reason = "host_not_allowed";
  verdict.message = fmt::format("no rule allows {}", name.text());
  verdict.fix = Judge(rules, EgressConnect{name, 443}).fix;
  for (const EgressRule& rule : rules) {
    if (rule.deny || !rule.host.Covers(name)) {
      continue;
    }
    for (const PortRange& range : rule.ports) {
      if (!IsDenied(rules, name, range)) {
        EgressVerdict allowed;
        allowed.rule = &rule;
        return allowed;
      }
    }
    verdict.reason = "host_denied";
    verdict.message = fmt::format("a rule denies {}", name.text());
    verdict.fix = "";
  }
  return verdict;
}

}  // namespace coffer::policy
