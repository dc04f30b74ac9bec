// SPDX-License-Identifier: Apache-2.0
#include "cli/denied_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "policy/egress_grants.h"
#include "policy/egress_line.h"
#include "policy/manifest/parse.h"

namespace coffer::cli {
namespace {

// Whether `deny` covers every host and every port of the rule.
bool CoversAll(const policy::EgressRule& deny, const policy::EgressRule& rule) {
  return deny.host.Covers(rule.host) &&
         std::all_of(rule.ports.begin(), rule.ports.end(), [&](const policy::PortRange& range) {
           return std::any_of(deny.ports.begin(), deny.ports.end(),
                              [&](const policy::PortRange& denied) {
                                return denied.Contains(range.first) && denied.Contains(range.last);
                              });
         });
}

}  // namespace

std::vector<std::string> DeniedRules(std::string_view manifest, const std::string& file,
                                     const policy::EgressConfig& egress) {
  std::vector<std::string> notes;
  const policy::ParsedManifest parsed = policy::ParseManifest(manifest, file);
  if (!parsed.manifest) {
    return notes;
  }
  for (const policy::NetworkRule& written : parsed.manifest->network) {
    const std::string line = policy::EgressLine(written);
    const Result<policy::EgressRule> rule =
        policy::IsSetLine(line) ? Internal("policy.egress", "") : policy::ParseEgressLine(line);
    for (const std::string& text : egress.deny) {
      const Result<policy::EgressRule> deny = policy::ParseDeny(text);
      if (rule.ok() && deny.ok() && CoversAll(*deny, *rule)) {
        notes.push_back(fmt::format(
            "{}:{}: network.allow of {} never matches: [egress] deny of the configuration has {}",
            Printable(file), written.position.line,
            written.any_host ? "any host" : Printable(written.host), Printable(text)));
        break;
      }
    }
  }
  return notes;
}

}  // namespace coffer::cli
