// SPDX-License-Identifier: Apache-2.0
#include "egress/resolver.h"

#include <fmt/format.h>

#include "policy/address_class.h"
#include "policy/egress_name.h"

namespace coffer::egress {
namespace {

constexpr uint32_t kSeconds = 60;  // an answer holds as long as the boundary lives

// Programs ask for the names of addresses by themselves, to log them. That reaches for no host.
bool IsReverse(std::string_view name) {
  return name.ends_with(".in-addr.arpa") || name.ends_with(".ip6.arpa");
}

}  // namespace

Resolver::Resolver(std::span<const policy::EgressRule> rules, TrafficLog log)
    : rules_(rules), log_(std::move(log)) {}

std::optional<std::string> Resolver::Answer(std::string_view message) {
  const Result<DnsQuestion> question = ParseDnsQuery(message);
  if (!question.ok()) {
    return std::nullopt;
  }
  return question->name ? AnswerName(*question, *question->name)
                        : MakeDnsAnswer(*question, DnsAnswer::kNoName);
}

std::string Resolver::AnswerName(const DnsQuestion& question, const policy::HostName& name) {
  if (const policy::EgressVerdict verdict = policy::JudgeName(rules_, name); !verdict.allowed()) {
    if (!IsReverse(name.text())) {
      Deny(name.text(), verdict.message, verdict.fix);
    }
    return MakeDnsAnswer(question, DnsAnswer::kNoName);
  }
  const bool v6 = ipv6_ && question.type == DnsQuestion::Type::kAaaa;
  if (question.type != DnsQuestion::Type::kA && !v6) {
    return MakeDnsAnswer(question, DnsAnswer::kNoData);
  }
  if (const std::optional<policy::IpAddress> address = names_.AddressOf(name, v6)) {
    return MakeDnsAnswer(question, *address, kSeconds);
  }
  Deny(name.text(),
       fmt::format("this call has asked for {} names, and gets no more", NameTable::kMostNames),
       "");
  return MakeDnsAnswer(question, DnsAnswer::kRefused);
}

void Resolver::Deny(std::string host, std::string reason, std::string fix) {
  const bool metadata = policy::IsMetadataName(host);
  if (metadata ? !denied_metadata_.insert(host).second
               : denied_.size() > kMostDenials || !denied_.insert(host).second) {
    return;
  }
  Traffic traffic;
  traffic.host = std::move(host);
  traffic.reason = std::move(reason);
  traffic.fix = std::move(fix);
  if (!metadata && denied_.size() > kMostDenials) {
    traffic.host = "";
    traffic.reason =
        fmt::format("more than {} names are not allowed; the others are not listed", kMostDenials);
    traffic.fix = "";
  }
  log_(traffic);
}

}  // namespace coffer::egress
