// SPDX-License-Identifier: Apache-2.0
//
// The value of --allow, taken apart.
#include <fmt/format.h>

#include <algorithm>

#include "base/split.h"
#include "base/text.h"
#include "policy/address_class.h"
#include "policy/egress_rule.h"
#include "policy/manifest/rules.h"

namespace coffer::policy {
namespace {

constexpr std::string_view kForms =
    "write api.example.com, api.example.com:8443, 'GET https://api.example.com/v1/**', "
    "http://HOST/PATH or tcp://HOST:PORT";
constexpr uint16_t kSshPort = 22;

Error NotARule(std::string_view text, std::string_view why, std::string_view hint = kForms) {
  return Refused("policy.allow", fmt::format("{}: {}", Printable(text), why), std::string(hint));
}

bool IsMethod(std::string_view text) {
  return !text.empty() && text.size() <= 20 && text != "CONNECT" &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

// "GET,HEAD " in front of `rest`, if there is a space at all.
Status TakeMethods(std::string_view text, std::string_view& rest, EgressRule& rule) {
  const size_t space = rest.find(' ');
  if (space == std::string_view::npos) {
    return {};
  }
  for (const std::string_view method : SplitText(rest.substr(0, space), ',')) {
    if (!IsMethod(method)) {
      return NotARule(text, fmt::format("\"{}\" is not a method in capitals", Printable(method)));
    }
    if (std::find(rule.methods.begin(), rule.methods.end(), method) == rule.methods.end()) {
      rule.methods.emplace_back(method);
    }
  }
  rest.remove_prefix(space + 1);
  return {};
}

// "https://" and its kin in front of `rest`. False: there is none.
bool TakeScheme(std::string_view& rest, std::string_view scheme) {
  if (!rest.starts_with(scheme)) {
    return false;
  }
  rest.remove_prefix(scheme.size());
  return true;
}

// Of this machine, a server is reached by a name that is made to lead there.
std::string LocalHint(const EgressRule& rule) {
  return fmt::format(
      "servers that run inside need no rule; for one outside give it a name: tcp://server.test:{} "
      "with --resolve server.test=127.0.0.1 and --dangerously-allow-address 127.0.0.1",
      rule.ports.front().first);
}

// Too broad for a rule on the command line, or nothing that can be reached. Of the hosts that a
// manifest calls dangerous, a name without a dot and an address are the user's own to choose: the
// guard of addresses stands behind.
Status CheckBreadth(const EgressRule& rule) {
  const HostPattern& pattern = rule.host;
  const bool exact = pattern.kind() == HostPattern::Kind::kExact;
  if (exact && pattern.domain().address()) {
    return {};
  }
  if (const auto objection = ObjectToHost(pattern.text());
      objection && (!exact || objection->final)) {
    return Refused("policy.allow", objection->message,
                   IsLocalName(pattern.domain().text()) ? LocalHint(rule)
                                                        : "name the host that the command needs");
  }
  return {};
}

}  // namespace

Result<EgressRule> ParseAllow(std::string_view text) {
  if (text.size() > 4096) {
    return NotARule(text, "it is longer than 4096 bytes");
  }
  EgressRule rule;
  std::string_view rest = text;
  TRY(TakeMethods(text, rest, rule));
  const bool https = TakeScheme(rest, "https://");
  const bool http = !https && TakeScheme(rest, "http://");
  const bool tcp = !https && !http && TakeScheme(rest, "tcp://");
  const bool url = https || http;
  if (!url && !rule.methods.empty()) {
    return NotARule(text, "methods need a URL behind them");
  }
  std::string_view path;
  if (const size_t slash = rest.find('/'); slash != std::string_view::npos) {
    path = rest.substr(slash);
    rest = rest.substr(0, slash);
  }
  if (!url && !path.empty()) {
    return NotARule(text, "a path needs https:// or http:// in front of the host");
  }
  if (!path.empty()) {
    if (const auto objection = ObjectToUrlPath(path)) {
      return Refused("policy.allow", objection->message, objection->hint);
    }
  }
  if (rest == "*" || rest == "**") {
    return Refused("policy.allow", fmt::format("\"{}\" is every host", rest),
                   "name the hosts that the command needs; --hold asks you for each");
  }
  if (rest.find_first_of(", ") != std::string_view::npos) {
    return NotARule(text, "a rule has one host", "write a rule for each host: --allow is repeated");
  }
  // The stars are taken off for the part that has a port.
  const size_t stars = rest.starts_with("**.") ? 3 : rest.starts_with("*.") ? 2 : 0;
  TRY_ASSIGN(const HostAndPort named, ParseHostAndPort(rest.substr(stars)));
  TRY_ASSIGN(rule.host, HostPattern::Parse(std::string(rest.substr(0, stars)) + named.host.text()));

  const bool every_path = path.empty() || IsEveryPath(path);
  if (!every_path) {
    rule.paths.emplace_back(path);
  }
  if (http) {
    rule.tls = TlsMode::kPlain;
  } else if (tcp || (!https && named.port == kSshPort)) {
    rule.tls = TlsMode::kNone;
  } else if (!every_path || !rule.methods.empty()) {
    rule.tls = TlsMode::kIntercept;
  }
  const uint16_t usual = http ? 80 : 443;
  const uint16_t port = named.port == 0 ? usual : named.port;
  if (tcp && named.port == 0) {
    return NotARule(text, "tcp:// needs a port");
  }
  rule.ports = {{port, port}};
  TRY(CheckBreadth(rule));
  return rule;
}

}  // namespace coffer::policy
