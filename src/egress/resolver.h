// SPDX-License-Identifier: Apache-2.0
//
// The resolver of one boundary: answers DNS queries by the rules and sends none.
//
// A name that a rule covers gets a synthetic address (name_table.h); which of its ports may be used
// is judged when a program connects. Every other name does not exist, and is written down as a
// denial, each once and kMostDenials in all; those of metadata services always. AAAA and every other
// type have no data: one address is enough to be led here. The real address of a name is looked up
// when it is dialled (upstream.h), never here, so a query cannot carry anything out.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "egress/dns_message.h"
#include "egress/name_table.h"
#include "egress/traffic.h"
#include "policy/egress_rule.h"

namespace coffer::egress {

class Resolver {
 public:
  static constexpr size_t kMostDenials = 128;

  // `rules` outlive it.
  Resolver(std::span<const policy::EgressRule> rules, TrafficLog log);

  // The answer to one message; nothing for bytes that are no query.
  std::optional<std::string> Answer(std::string_view message);
  // From here on names have IPv6 addresses as well: connections to them arrive.
  void AnswerIpv6() { ipv6_ = true; }
  const NameTable& names() const { return names_; }

 private:
  std::string AnswerName(const DnsQuestion& question, const policy::HostName& name);
  void Deny(std::string host, std::string reason, std::string fix);

  const std::span<const policy::EgressRule> rules_;
  const TrafficLog log_;
  NameTable names_;
  bool ipv6_ = false;
  std::set<std::string> denied_;
  std::set<std::string> denied_metadata_;  // beside them, so that no flood hides them
};

}  // namespace coffer::egress
