// SPDX-License-Identifier: Apache-2.0
//
// The grants of a call as values: rules, names with fixed addresses, and addresses that are open beside the internet's.
//
// `coffer` reads them to refuse a mistake before anything starts; the egress process reads the same texts with this code,
// so what was checked is what holds.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/egress_rule.h"
#include "policy/egress_texts.h"
#include "policy/ip_address.h"

namespace coffer::policy {

struct ParsedGrants {
  std::vector<EgressRule> rules;
  std::map<std::string, std::vector<IpAddress>> resolve;  // by HostName::text()
  std::vector<AddressRange> addresses;
  uint64_t connections = 0;  // at the same time; 0: the proxy's own bound
  bool of_tool = false;

  // A rule judges requests inside TLS: the boundary needs a CA.
  bool intercepts() const;
};

// kRefused with a hint, naming the flag.
Result<ParsedGrants> ParseGrants(const EgressTexts& grants);

// The parts by themselves, for the configuration; the message names no flag.
struct FixedName {
  HostName name;
  IpAddress address;
};
Result<FixedName> ParseResolve(std::string_view text);
Result<AddressRange> ParseOpenRange(std::string_view text);

}  // namespace coffer::policy
