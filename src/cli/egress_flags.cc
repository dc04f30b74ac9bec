// SPDX-License-Identifier: Apache-2.0
#include "cli/egress_flags.h"

#include <fmt/format.h>

#include "policy/egress_grants.h"

namespace coffer::cli {

Status CheckEgressFlags(call::RunRequest& request) {
  const policy::EgressTexts& grants = request.egress;
  if (grants.allow.empty()) {
    const char* const alone = !grants.resolve.empty()       ? "--resolve"
                              : !grants.addresses.empty()   ? "--dangerously-allow-address"
                              : !grants.upstream_ca.empty() ? "--upstream-ca"
                                                            : nullptr;
    return alone == nullptr
               ? Status()
               : Status(Refused("policy.usage", fmt::format("{} allows nothing by itself", alone),
                                "name the host too: --allow api.example.com"));
  }
  TRY_ASSIGN(const policy::ParsedGrants parsed, policy::ParseGrants(grants));
  request.egress_intercepts = parsed.intercepts();
  return {};
}

}  // namespace coffer::cli
