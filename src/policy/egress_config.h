// SPDX-License-Identifier: Apache-2.0
//
// What the operator says about the network of every tool: [egress] of the configuration. A manifest says which hosts; this
// says where names lead, which addresses are open beside the internet's, and which certificates count as trusted too.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace coffer::policy {

struct EgressConfig {
  std::vector<std::string> resolve;    // NAME=ADDRESS
  std::vector<std::string> addresses;  // dangerously_addresses, CIDRs
  std::string upstream_ca;             // PEM text; the configuration names its file
  // Rules as --allow takes them, by the name that manifests give after an @. Sorted by name.
  std::vector<std::pair<std::string, std::vector<std::string>>> sets;
  bool operator==(const EgressConfig&) const = default;
};

}  // namespace coffer::policy
