// SPDX-License-Identifier: Apache-2.0
#include "policy/egress_grants.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "policy/address_class.h"
#include "policy/egress_line.h"

namespace coffer::policy {
namespace {

constexpr size_t kMostGrants = 256;

Error InFlag(const char* flag, Error error) {
  error.kind = ErrorKind::kRefused;
  error.message = fmt::format("{}: {}", flag, error.message);
  return error;
}

}  // namespace

bool ParsedGrants::intercepts() const {
  return std::any_of(rules.begin(), rules.end(),
                     [](const EgressRule& rule) { return rule.tls == TlsMode::kIntercept; });
}

Result<FixedName> ParseResolve(std::string_view text) {
  constexpr const char* kHint = "write api.example.com=192.0.2.7";
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    return Refused("policy.egress", fmt::format("\"{}\" is not NAME=ADDRESS", Printable(text)),
                   kHint);
  }
  TRY_ASSIGN(HostName name, HostName::Parse(text.substr(0, equals)));
  const std::optional<IpAddress> address = IpAddress::Parse(text.substr(equals + 1));
  if (!address || name.address()) {
    return Refused("policy.egress",
                   fmt::format("\"{}\" does not lead from a name to an address", Printable(text)),
                   kHint);
  }
  return FixedName{std::move(name), *address};
}

Result<AddressRange> ParseOpenRange(std::string_view text) {
  TRY_ASSIGN(AddressRange range, ParseAddressRange(text));
  if (!IsOfOneKind(range)) {
    return Refused("policy.egress",
                   fmt::format("{} covers more than one kind of network", range.text()),
                   "name the network that is needed, such as 10.0.0.0/8 or 127.0.0.1/32");
  }
  return range;
}

Result<ParsedGrants> ParseGrants(const EgressTexts& grants) {
  ParsedGrants parsed;
  parsed.connections = grants.connections;
  parsed.of_tool = grants.of_tool;
  if (grants.allow.size() + grants.lines.size() > kMostGrants ||
      grants.resolve.size() > kMostGrants || grants.addresses.size() > kMostGrants) {
    return Refused("policy.egress", fmt::format("more than {} rules for the network", kMostGrants),
                   "name domains with **.example.com instead of every host");
  }
  for (const std::string& text : grants.allow) {
    Result<EgressRule> rule = ParseAllow(text);
    if (!rule.ok()) {
      return InFlag("--allow", std::move(rule.error()));
    }
    parsed.rules.push_back(std::move(rule).value());
  }
  for (const std::string& line : grants.lines) {
    TRY_ASSIGN(EgressRule rule, ParseEgressLine(line));
    parsed.rules.push_back(std::move(rule));
  }
  for (EgressRule& rule : parsed.rules) {
    rule.of_tool = grants.of_tool;
  }
  for (const std::string& text : grants.resolve) {
    Result<FixedName> fixed = ParseResolve(text);
    if (!fixed.ok()) {
      return InFlag("--resolve", std::move(fixed.error()));
    }
    parsed.resolve[fixed->name.text()].push_back(fixed->address);
  }
  for (const std::string& text : grants.addresses) {
    Result<AddressRange> range = ParseOpenRange(text);
    if (!range.ok()) {
      return InFlag("--dangerously-allow-address", std::move(range.error()));
    }
    parsed.addresses.push_back(*range);
  }
  return parsed;
}

}  // namespace coffer::policy
