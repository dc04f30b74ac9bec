// SPDX-License-Identifier: Apache-2.0
#include "policy/egress_grants.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

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

// Every host may be asked for, as --allow HOST:PORT would write it: TLS, and on port 22 any bytes.
void AddHold(std::vector<EgressRule>& rules) {
  EgressRule rule;
  rule.host = HostPattern::Any();
  rule.ask = true;
  rule.ports = {{1, 21}, {23, 65535}};
  rules.push_back(rule);
  rule.ports = {{22, 22}};
  rule.tls = TlsMode::kNone;
  rules.push_back(std::move(rule));
}

// For a message: what stands before an @ may be a password.
std::string_view WithoutUser(std::string_view text) {
  const size_t at = text.rfind('@');
  return at == std::string_view::npos ? text : text.substr(at + 1);
}

// The smaller of two limits, where 0 is none.
uint64_t Lesser(uint64_t a, uint64_t b) { return std::min(a - 1, b - 1) + 1; }

}  // namespace

bool ParsedGrants::is_proxied(const HostName& host) const {
  return upstream_proxy && !host.address() &&
         (proxied.empty() ||
          std::any_of(proxied.begin(), proxied.end(),
                      [&](const HostPattern& pattern) { return pattern.Covers(host); }));
}

bool ParsedGrants::intercepts() const {
  return std::any_of(rules.begin(), rules.end(),
                     [](const EgressRule& rule) { return rule.tls == TlsMode::kIntercept; });
}

bool ParsedGrants::judges() const {
  return std::any_of(rules.begin(), rules.end(), [](const EgressRule& rule) {
    return rule.tls == TlsMode::kIntercept || rule.tls == TlsMode::kPlain;
  });
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

Result<HostAndPort> ParseUpstreamProxy(std::string_view text) {
  constexpr const char* kHint =
      "write http://proxy.example.com:3128; user names and passwords are not taken";
  constexpr std::string_view kScheme = "http://";
  std::string_view rest = text;
  if (!rest.starts_with(kScheme)) {
    return Refused("policy.egress",
                   fmt::format("\"{}\" is not the URL of a proxy", Printable(WithoutUser(text))),
                   kHint);
  }
  rest.remove_prefix(kScheme.size());
  if (rest.find('@') != std::string_view::npos) {
    return Refused("policy.egress", "a proxy's URL with a user name or password", kHint);
  }
  if (rest.ends_with('/')) {
    rest.remove_suffix(1);
  }
  Result<HostAndPort> proxy = ParseHostAndPort(rest);
  if (!proxy.ok() || proxy->port == 0) {
    return Refused("policy.egress",
                   fmt::format("\"{}\" is not the URL of a proxy with its port", Printable(text)),
                   kHint);
  }
  return proxy;
}

Result<EgressRule> ParseDeny(std::string_view text) {
  EgressRule rule;
  rule.deny = true;
  rule.ports = {{1, 65535}};
  std::string_view host = text;
  if (const size_t colon = text.rfind(':');
      colon != std::string_view::npos && text.find(':') == colon) {
    uint16_t port = 0;
    const std::string_view digits = text.substr(colon + 1);
    const char* const end = digits.data() + digits.size();
    const auto [stop, problem] = std::from_chars(digits.data(), end, port);
    if (problem != std::errc() || stop != end || port == 0) {
      return Refused("policy.egress", fmt::format("\"{}\" has no port", Printable(text)),
                     "write HOST or HOST:PORT, such as **.example.net or files.example.com:22");
    }
    rule.ports = {{port, port}};
    host = text.substr(0, colon);
  }
  if (host == "*") {
    rule.host = HostPattern::Any();
  } else {
    TRY_ASSIGN(rule.host, HostPattern::Parse(host));
  }
  return rule;
}

Result<ParsedGrants> ParseGrants(const EgressTexts& grants) {
  ParsedGrants parsed;
  parsed.connections = grants.connections;
  parsed.of_tool = grants.of_tool;
  parsed.hold_seconds = grants.hold_seconds;
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
  if (grants.hold) {
    AddHold(parsed.rules);
  }
  for (EgressRule& rule : parsed.rules) {
    rule.of_tool = grants.of_tool;
    rule.bytes_out = Lesser(rule.bytes_out, grants.most_bytes_out);
    rule.bytes_in = Lesser(rule.bytes_in, grants.most_bytes_in);
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
  for (const std::string& text : grants.deny) {
    TRY_ASSIGN(EgressRule rule, ParseDeny(text));
    parsed.rules.push_back(std::move(rule));
  }
  if (!grants.upstream_proxy.empty()) {
    Result<HostAndPort> proxy = ParseUpstreamProxy(grants.upstream_proxy);
    if (!proxy.ok()) {
      return InFlag("--upstream-proxy", std::move(proxy.error()));
    }
    parsed.upstream_proxy = std::move(proxy).value();
  }
  for (const std::string& text : grants.proxied) {
    TRY_ASSIGN(HostPattern pattern, HostPattern::Parse(text));
    parsed.proxied.push_back(std::move(pattern));
  }
  if (!grants.never_send.empty()) {
    Result<std::vector<NeverSendValue>> values = ParseNeverSend(grants.never_send);
    if (!values.ok()) {
      return InFlag("--never-send", std::move(values.error()));
    }
    parsed.never_send = std::move(values).value();
  }
  return parsed;
}

}  // namespace coffer::policy
