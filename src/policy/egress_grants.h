// SPDX-License-Identifier: Apache-2.0
//
// The grants of a call as values: rules, names with fixed addresses, and addresses that are open beside the internet's.
//
// `coffer` reads them to refuse a mistake before anything starts; the egress process reads the same
// texts with this code, so both decide alike.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/egress_rule.h"
#include "policy/egress_texts.h"
#include "policy/ip_address.h"
#include "policy/never_send.h"

namespace coffer::policy {

struct ParsedGrants {
  std::vector<EgressRule> rules;
  std::map<std::string, std::vector<IpAddress>> resolve;  // by HostName::text()
  std::vector<AddressRange> addresses;
  uint64_t connections = 0;  // at the same time; 0: the proxy's own bound
  bool of_tool = false;
  uint32_t hold_seconds = 0;  // 0: no person can be asked

  std::optional<HostAndPort> upstream_proxy;
  std::vector<HostPattern> proxied;  // none: all
  std::vector<NeverSendValue> never_send;

  // Whether that host is dialled through the proxy.
  bool is_proxied(const HostName& host) const;
  // A rule judges requests inside TLS: the boundary needs a CA.
  bool intercepts() const;
  // A rule judges requests, inside TLS or without it.
  bool judges() const;
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
Result<HostAndPort> ParseUpstreamProxy(std::string_view text);
// A rule that denies: HOST or HOST:PORT, of all ports if none is named. Patterns may be as broad as "*".
Result<EgressRule> ParseDeny(std::string_view text);

}  // namespace coffer::policy
