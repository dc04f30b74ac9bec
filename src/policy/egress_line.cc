// SPDX-License-Identifier: Apache-2.0
#include "policy/egress_line.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace coffer::policy {
namespace {

constexpr size_t kMostSetName = 64;
constexpr TlsMode kModes[] = {TlsMode::kSplice, TlsMode::kIntercept, TlsMode::kPlain,
                              TlsMode::kNone};

bool JudgesRequests(TlsMode mode) { return mode == TlsMode::kIntercept || mode == TlsMode::kPlain; }

// Throws if it is not a rule.
Result<EgressRule> RuleOf(const Json& json) {
  EgressRule rule;
  const std::string host = json.at("host").get<std::string>();
  if (host == "*") {
    rule.host = HostPattern::Any();
  } else {
    TRY_ASSIGN(rule.host, HostPattern::Parse(host));
  }
  rule.ports.clear();
  for (const Json& range : json.at("ports")) {
    rule.ports.push_back({range.at(0).get<uint16_t>(), range.at(1).get<uint16_t>()});
  }
  const std::string mode = json.at("tls").get<std::string>();
  const auto* const found = std::find_if(std::begin(kModes), std::end(kModes),
                                         [&](TlsMode one) { return TlsModeName(one) == mode; });
  if (found == std::end(kModes) || rule.ports.empty()) {
    throw std::out_of_range("tls");
  }
  rule.tls = *found;
  rule.methods = json.at("methods").get<std::vector<std::string>>();
  rule.paths = json.at("paths").get<std::vector<std::string>>();
  // No method or path at all must not be read as every one.
  if (JudgesRequests(rule.tls) && (rule.methods.empty() || rule.paths.empty())) {
    throw std::out_of_range("methods");
  }
  rule.bytes_out = json.at("bytes_out").get<uint64_t>();
  rule.bytes_in = json.at("bytes_in").get<uint64_t>();
  if (json.contains("connections")) {
    rule.connections = json.at("connections").get<uint64_t>();
  }
  if (json.contains("time_ns")) {
    rule.time = Nanos(json.at("time_ns").get<int64_t>());
  }
  rule.ask = json.contains("ask") && json.at("ask").get<bool>();
  if (const std::string rate = json.at("rate").get<std::string>(); !rate.empty()) {
    TRY_ASSIGN(rule.rate, ParseRate(rate));
  }
  return rule;
}

}  // namespace

bool IsSetName(std::string_view name) {
  return !name.empty() && name.size() <= kMostSetName &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
         });
}

std::string EgressLine(const NetworkRule& rule) {
  if (IsSetLine(rule.host)) {
    return rule.host;
  }
  Json ports = Json::array();
  for (const PortRange& range : rule.ports) {
    ports.push_back(Json::array({range.first, range.last}));
  }
  const bool judged = JudgesRequests(rule.tls);
  Json json = {{"host", rule.any_host ? "*" : rule.host},
               {"ports", std::move(ports)},
               {"tls", TlsModeName(rule.tls)},
               {"methods", judged ? rule.methods : std::vector<std::string>()},
               {"paths", judged ? rule.paths : std::vector<std::string>()},
               {"bytes_out", rule.bytes_out},
               {"bytes_in", rule.bytes_in},
               {"rate", rule.rate ? FormatRate(*rule.rate) : ""}};
  if (rule.connections > 0) {
    json["connections"] = rule.connections;
  }
  if (rule.time > Nanos(0)) {
    json["time_ns"] = rule.time.count();
  }
  if (rule.ask) {
    json["ask"] = true;
  }
  return (rule.dangerous ? "!" : "") + PrintJson(json);
}

Result<EgressRule> ParseEgressLine(std::string_view line) {
  if (IsDangerousLine(line)) {
    line.remove_prefix(1);
  }
  TRY_ASSIGN(const Json json, ParseJson(line));
  try {
    return RuleOf(json);
  } catch (const std::exception& problem) {
    return Internal("policy.egress", std::string("not a rule of a manifest: ") + problem.what());
  }
}

}  // namespace coffer::policy
