// SPDX-License-Identifier: Apache-2.0
//
// What a call may reach outside, as its caller or its manifest wrote it. policy/egress_grants.h makes values of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace coffer::policy {

// Empty: nothing.
struct EgressTexts {
  std::vector<std::string> allow;      // --allow, one rule each
  std::vector<std::string> resolve;    // --resolve NAME=ADDRESS
  std::vector<std::string> addresses;  // --dangerously-allow-address, CIDRs
  std::string upstream_ca;  // --upstream-ca: PEM text of certificates that count as trusted too
  // Of a declared tool: rules of its manifest (policy/egress_line.h), and how many connections at once (0: the proxy's own
  // bound). Never from flags.
  std::vector<std::string> lines;
  uint64_t connections = 0;
  bool of_tool = false;  // a refusal names the manifest, not a flag
  bool empty() const { return allow.empty() && lines.empty(); }
};

}  // namespace coffer::policy
