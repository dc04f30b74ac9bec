// SPDX-License-Identifier: Apache-2.0
#include "policy/egress_grants.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "policy/address_class.h"

namespace coffer::policy {
namespace {

constexpr size_t kMostGrants = 256;

Error InFlag(const char* flag, Error error) {
  error.kind = ErrorKind::kRefused;
  error.message = fmt::format("{}: {}", flag, error.message);
  return error;
}

Status ReadResolve(const std::string& text, ParsedGrants& parsed) {
  constexpr const char* kFlag = "--resolve";
  const size_t equals = text.find('=');
  if (equals == std::string::npos) {
    return Refused("policy.egress",
                   fmt::format("{}: \"{}\" is not NAME=ADDRESS", kFlag, Printable(text)),
                   "write --resolve api.example.com=192.0.2.7");
  }
  Result<HostName> name = HostName::Parse(text.substr(0, equals));
  if (!name.ok()) {
    return InFlag(kFlag, std::move(name.error()));
  }
  const std::optional<IpAddress> address = IpAddress::Parse(text.substr(equals + 1));
  if (!address || name->address()) {
    return Refused(
        "policy.egress",
        fmt::format("{}: \"{}\" does not lead from a name to an address", kFlag, Printable(text)),
        "write --resolve api.example.com=192.0.2.7");
  }
  parsed.resolve[name->text()].push_back(*address);
  return {};
}

}  // namespace

bool ParsedGrants::intercepts() const {
  return std::any_of(rules.begin(), rules.end(),
                     [](const EgressRule& rule) { return rule.tls == TlsMode::kIntercept; });
}

Result<ParsedGrants> ParseGrants(const EgressTexts& grants) {
  ParsedGrants parsed;
  if (grants.allow.size() > kMostGrants || grants.resolve.size() > kMostGrants ||
      grants.addresses.size() > kMostGrants) {
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
  for (const std::string& text : grants.resolve) {
    TRY(ReadResolve(text, parsed));
  }
  for (const std::string& text : grants.addresses) {
    Result<AddressRange> range = ParseAddressRange(text);
    if (!range.ok()) {
      return InFlag("--dangerously-allow-address", std::move(range.error()));
    }
    if (!IsOfOneKind(*range)) {
      return Refused(
          "policy.egress",
          fmt::format("--dangerously-allow-address: {} covers more than one kind of network",
                      range->text()),
          "name the network that is needed, such as 10.0.0.0/8 or 127.0.0.1/32");
    }
    parsed.addresses.push_back(*range);
  }
  return parsed;
}

}  // namespace coffer::policy
