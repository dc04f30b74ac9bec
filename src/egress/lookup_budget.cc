// SPDX-License-Identifier: Apache-2.0
#include "egress/lookup_budget.h"

#include <fmt/format.h>

#include <algorithm>

namespace coffer::egress {

using policy::HostName;
using policy::IpAddress;

std::optional<size_t> LookupBudget::ChosenBytes(const HostName& host) const {
  if (host.address()) {
    return std::nullopt;
  }
  size_t domain = 0;
  for (const policy::EgressRule& rule : rules_) {
    if (rule.deny || !rule.host.Covers(host)) {
      continue;
    }
    if (rule.host.domain() == host) {
      return std::nullopt;
    }
    domain = std::max(domain, rule.host.domain().text().size());
  }
  return host.text().size() - domain;
}

bool LookupBudget::IsChosen(const HostName& host) const { return ChosenBytes(host).has_value(); }

std::optional<std::string> LookupBudget::Charge(const HostName& host) {
  const size_t chosen = IsKnown(host) ? 0 : ChosenBytes(host).value_or(0);
  if (lookups_ >= kMostLookups) {
    return fmt::format(
        "{} is not looked up: the call has made {} lookups of names that its rules do not write "
        "out, and gets no more",
        host.text(), kMostLookups);
  }
  if (chosen > kMostBytes - bytes_) {
    return fmt::format(
        "{} is not looked up: names that the rules of the call do not write out have {} bytes in "
        "all, and these are spent",
        host.text(), kMostBytes);
  }
  ++lookups_;
  bytes_ += chosen;
  names_[host.text()].pending = true;
  return std::nullopt;
}

void LookupBudget::Keep(const HostName& host, std::vector<IpAddress> addresses, Nanos now) {
  const auto name = names_.find(host.text());
  if (name == names_.end()) {
    return;
  }
  const Nanos until = now + (addresses.empty() ? kNoneKept : kKept);
  name->second = {/*pending=*/false, std::move(addresses), until};
}

const std::vector<IpAddress>* LookupBudget::Kept(const HostName& host, Nanos now) const {
  const auto name = names_.find(host.text());
  return name == names_.end() || name->second.until <= now ? nullptr : &name->second.addresses;
}

void LookupBudget::DoubtAnswer(const HostName& host, Nanos now) {
  if (const auto name = names_.find(host.text()); name != names_.end()) {
    name->second.until = std::min(name->second.until, now + kDoubtKept);
  }
}

void LookupBudget::Forget(const HostName& host) {
  if (const auto name = names_.find(host.text()); name != names_.end()) {
    name->second = {};
  }
}

bool LookupBudget::IsPending(const HostName& host) const {
  const auto name = names_.find(host.text());
  return name != names_.end() && name->second.pending;
}

}  // namespace coffer::egress
