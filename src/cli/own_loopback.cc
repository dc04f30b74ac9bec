// SPDX-License-Identifier: Apache-2.0
#include "cli/own_loopback.h"

#include <fmt/format.h>

#include "policy/address_class.h"
#include "policy/egress_rule.h"

namespace coffer::cli {

std::string OwnLoopbackNote(const call::RunRequest& request) {
  for (const std::string& text : request.egress.allow) {
    const Result<policy::EgressRule> rule = policy::ParseAllow(text);
    if (!rule.ok() || !rule->host.domain().address()) {
      continue;
    }
    const policy::IpAddress address = policy::Unmapped(*rule->host.domain().address());
    const std::optional<policy::AddressBlock> block = policy::BlockOf(address);
    if (block && block->kind == policy::AddressClass::kLoopback) {
      return fmt::format(
          "{0} inside is the command's own; a server of this machine needs a name: --allow "
          "tcp://server.test:{1} --resolve server.test={0} --dangerously-allow-address {0}",
          address.text(), rule->ports.front().first);
    }
  }
  return {};
}

}  // namespace coffer::cli
