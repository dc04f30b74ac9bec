// SPDX-License-Identifier: Apache-2.0
#include "call/warden/grant_network.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "policy/egress_line.h"

namespace coffer::call {

Status GrantNetwork(const WardenTable& table, RunRequest& request) {
  request.egress = {};
  if (request.envelope.network.empty()) {
    return {};
  }
  policy::EgressTexts& granted = request.egress;
  for (const std::string& line : request.envelope.network) {
    if (!policy::IsSetLine(line)) {
      granted.lines.push_back(line);
      continue;
    }
    const std::string name = line.substr(1);
    const auto& sets = table.egress.sets;
    const auto set =
        std::find_if(sets.begin(), sets.end(), [&](const auto& one) { return one.first == name; });
    if (set == sets.end()) {
      return Refused("policy.egress",
                     fmt::format("the manifest of {} names the set {}, which is not in "
                                 "[egress.sets] of the configuration",
                                 Printable(request.entry), Printable(line)),
                     fmt::format("write {} = [\"HOST\"] under [egress.sets]", Printable(name)));
    }
    granted.allow.insert(granted.allow.end(), set->second.begin(), set->second.end());
  }
  granted.resolve = table.egress.resolve;
  granted.addresses = table.egress.addresses;
  granted.upstream_ca = table.egress.upstream_ca;
  granted.upstream_proxy = table.egress.upstream_proxy;
  granted.proxied = table.egress.proxied;
  granted.never_send = table.egress.never_send;
  granted.deny = table.egress.deny;
  granted.most_bytes_out = table.egress.bytes_out;
  granted.most_bytes_in = table.egress.bytes_in;
  const uint64_t own = request.envelope.connections;
  const uint64_t most = table.egress.connections;
  granted.connections = std::min(own - 1, most - 1) + 1;  // 0 is no limit
  granted.of_tool = true;
  // Which rules judge requests is for the egress process to say: it makes a CA if one does.
  request.egress_judging = RunRequest::Judging::kPerhaps;
  return {};
}

}  // namespace coffer::call
