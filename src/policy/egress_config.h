// SPDX-License-Identifier: Apache-2.0
//
// What the operator says about the network of every tool: [egress] of the configuration. A manifest
// says which hosts; this says where names lead, which addresses are open beside the internet's,
// which certificates count as trusted too, which hosts are behind a proxy, and what no manifest
// opens.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace coffer::policy {

struct EgressConfig {
  std::vector<std::string> resolve;    // NAME=ADDRESS
  std::vector<std::string> addresses;  // dangerously_addresses, CIDRs
  std::string upstream_ca;             // PEM text; the configuration names its file
  std::string upstream_proxy;          // "http://proxy.example.com:3128"; empty: none
  std::vector<std::string> proxied;    // patterns of hosts that are dialled through it; none: all
  std::string never_send;              // values that no request may hold, as their file has them
  // Ceilings: what no manifest opens, and the most that one gets. 0: no limit of the operator's.
  std::vector<std::string> deny;  // HOST or HOST:PORT
  uint64_t connections = 0;       // of one call, at the same time
  uint64_t bytes_out = 0;         // of one rule in one call
  uint64_t bytes_in = 0;
  uint32_t hold_seconds = 120;  // how long a connection waits for access that is asked for
  // Rules as --allow takes them, by the name that manifests give after an @. Sorted by name.
  std::vector<std::pair<std::string, std::vector<std::string>>> sets;
  bool operator==(const EgressConfig&) const = default;
};

}  // namespace coffer::policy
