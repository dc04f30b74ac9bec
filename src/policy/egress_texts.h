// SPDX-License-Identifier: Apache-2.0
//
// What a call may reach outside, as its caller wrote it. policy/egress_grants.h makes values of it.
#pragma once

#include <string>
#include <vector>

namespace coffer::policy {

// Empty: nothing.
struct EgressTexts {
  std::vector<std::string> allow;      // --allow, one rule each
  std::vector<std::string> resolve;    // --resolve NAME=ADDRESS
  std::vector<std::string> addresses;  // --dangerously-allow-address, CIDRs
  std::string upstream_ca;  // --upstream-ca: PEM text of certificates that count as trusted too
  bool empty() const { return allow.empty(); }
};

}  // namespace coffer::policy
