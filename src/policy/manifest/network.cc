// SPDX-License-Identifier: Apache-2.0
//
// Which hosts a tool may reach, and how: [[network.allow]].
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/quantity.h"
#include "base/text.h"
#include "policy/egress_line.h"
#include "policy/manifest/rules.h"
#include "policy/manifest/sections.h"

namespace coffer::policy {
namespace {

constexpr uint64_t kMostConnections = 1000000;

std::optional<PortRange> ParseRange(std::string_view text) {
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos) {
    return std::nullopt;
  }
  PortRange range;
  const auto number = [](std::string_view part, uint16_t& value) {
    const char* end = part.data() + part.size();
    const auto [rest, problem] = std::from_chars(part.data(), end, value);
    return problem == std::errc() && rest == end && value > 0;
  };
  if (!number(text.substr(0, dash), range.first) || !number(text.substr(dash + 1), range.last) ||
      range.last < range.first) {
    return std::nullopt;
  }
  return range;
}

void ReadPorts(TableReader& reader, NetworkRule& rule, Manifest& manifest, MistakeList& mistakes) {
  if (const TomlEntry* entry = reader.Find("ports"); entry != nullptr) {
    const TomlNode& node = entry->value;
    if (node.kind != TomlKind::kArray || node.items.empty()) {
      reader.Add("ports", "a list of single ports is wanted",
                 "write ports = [443]; a range needs dangerously_port_range and a reason");
    } else {
      rule.ports.clear();
      for (const TomlNode& item : node.items) {
        if (item.kind == TomlKind::kInteger && item.integer >= 1 && item.integer <= 65535) {
          const auto port = static_cast<uint16_t>(item.integer);
          rule.ports.push_back({port, port});
        } else {
          mistakes.Add(item.at, "network.allow.ports: not a port",
                       "write each port as a number from 1 to 65535; ranges are too broad");
        }
      }
    }
  }
  if (const auto text = reader.String("dangerously_port_range")) {
    if (const auto range = ParseRange(*text)) {
      if (reader.Find("ports") == nullptr) {
        rule.ports.clear();
      }
      rule.ports.push_back(*range);
      rule.dangerous = true;
      GrantDanger(reader, "dangerously_port_range", *text, manifest);
    } else {
      reader.Add("dangerously_port_range", fmt::format("\"{}\" is not a range", Printable(*text)),
                 "write it as \"8000-8080\"");
    }
  }
}

// What is inside the connections. Only requests that are seen can be judged.
void ReadTls(TableReader& reader, NetworkRule& rule) {
  static constexpr TlsMode kTlsModes[] = {TlsMode::kSplice, TlsMode::kIntercept, TlsMode::kPlain,
                                          TlsMode::kNone};
  const auto choice = reader.Choice("tls", {"splice", "intercept", "plain", "none"});
  if (!choice) {
    return;
  }
  rule.tls = kTlsModes[*choice];
  const bool ports =
      reader.Find("ports") != nullptr || reader.Find("dangerously_port_range") != nullptr;
  if (rule.tls == TlsMode::kPlain && !ports) {
    rule.ports = {{80, 80}};
  }
  if (rule.tls == TlsMode::kNone && !ports) {
    reader.Add("tls", "\"none\" needs the port", "write ports = [22] beside it");
  }
  if (rule.tls == TlsMode::kSplice || rule.tls == TlsMode::kNone) {
    rule.methods.clear();
    rule.paths = {"/**"};
    for (const char* key : {"methods", "paths"}) {
      if (reader.Find(key) != nullptr) {
        reader.Add(key, fmt::format("cannot be judged with tls = \"{}\"", TlsModeName(rule.tls)),
                   "leave it out, or write tls = \"intercept\"");
      }
    }
  }
}

void ReadBounds(TableReader& reader, NetworkRule& rule) {
  if (const auto text = reader.String("rate")) {
    Result<RateRule> rate = ParseRate(*text);
    if (rate.ok()) {
      rule.rate = *rate;
    } else {
      reader.Add("rate", std::move(rate.error()));
    }
  }
  reader.Parsed(rule.bytes_out, "bytes_out", ParseSize);
  reader.Parsed(rule.bytes_in, "bytes_in", ParseSize);
  rule.connections = reader.Count("connections", 1, kMostConnections).value_or(0);
  reader.Duration(rule.time, "time");
  rule.ask = reader.Boolean("ask").value_or(false);
}

// Which requests may be sent, where they are seen.
void ReadRequests(TableReader& reader, NetworkRule& rule, MistakeList& mistakes) {
  static constexpr std::string_view kMethods[] = {"GET",   "HEAD",   "POST",   "PUT",
                                                  "PATCH", "DELETE", "OPTIONS"};
  if (auto methods = reader.Strings("methods")) {
    for (size_t i = 0; i < methods->size(); ++i) {
      if (std::find(std::begin(kMethods), std::end(kMethods), (*methods)[i]) ==
          std::end(kMethods)) {
        mistakes.Add(
            reader.Find("methods")->value.items[i].at,
            fmt::format("network.allow.methods: no method \"{}\"", Printable((*methods)[i])),
            "name GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS, in capitals");
      }
    }
    rule.methods = std::move(*methods);
  }
  if (reader.Find("paths") == nullptr) {
    mistakes.Add(reader.position(), "network.allow.paths is missing",
                 "write paths = [\"/v1/**\"], or [\"/**\"] for all of the host");
  }
  if (auto paths = reader.Strings("paths")) {
    for (size_t i = 0; i < paths->size(); ++i) {
      if (const auto objection = ObjectToUrlPath((*paths)[i])) {
        mistakes.Add(reader.Find("paths")->value.items[i].at,
                     "network.allow.paths: " + objection->message, objection->hint);
      }
    }
    rule.paths = std::move(*paths);
  }
}

// host = "@NAME": rules that the operator wrote down once, in [egress] of the configuration. All terms are there.
bool ReadSet(TableReader& reader, const TomlNode& table, NetworkRule& rule) {
  const TomlEntry* const host = reader.Find("host");
  if (host == nullptr || host->value.kind != TomlKind::kString || !IsSetLine(host->value.text)) {
    return false;
  }
  rule.host = host->value.text;
  if (!IsSetName(std::string_view(rule.host).substr(1))) {
    reader.Add("host", fmt::format("\"{}\" is not the name of a set", Printable(rule.host)),
               "write @ and 1 to 64 lower-case letters, digits, dashes and underscores");
  }
  for (const TomlEntry& entry : table.entries) {
    if (entry.key != "host") {
      reader.Add(entry.key, fmt::format("beside the set {}", Printable(rule.host)),
                 "leave it out: the rules of a set are in [egress.sets] of the configuration");
    }
  }
  rule.tls = TlsMode::kSplice;
  rule.methods.clear();
  rule.paths = {"/**"};
  return true;
}

void ReadRule(const TomlNode& table, Manifest& manifest, MistakeList& mistakes) {
  TableReader reader(table, "network.allow", mistakes);
  NetworkRule rule;
  rule.position = table.at;
  if (ReadSet(reader, table, rule)) {
    manifest.network.push_back(std::move(rule));
    return;
  }
  const bool any = reader.Find("dangerously_allow_any_host") != nullptr;
  if (any) {
    if (reader.Find("host") != nullptr || reader.Find("dangerously_host") != nullptr) {
      reader.Add("dangerously_allow_any_host", "beside a host", "keep one of them");
    }
    const auto allow = reader.Boolean("dangerously_allow_any_host");
    if (allow && !*allow) {
      reader.Add("dangerously_allow_any_host", "false grants nothing", "name a host instead");
    } else if (allow) {
      rule.any_host = true;
      rule.dangerous = true;
      GrantDanger(reader, "dangerously_allow_any_host", "true", manifest);
    }
  } else {
    rule.host = ReadHost(reader, "\"api.example.com\"", ObjectToHost, rule.dangerous, manifest)
                    .value_or("");
  }
  ReadPorts(reader, rule, manifest, mistakes);
  ReadTls(reader, rule);
  if (rule.tls == TlsMode::kIntercept || rule.tls == TlsMode::kPlain) {
    ReadRequests(reader, rule, mistakes);
  }
  ReadBounds(reader, rule);
  CheckReasonIsUsed(reader, any || reader.Find("dangerously_host") != nullptr ||
                                reader.Find("dangerously_port_range") != nullptr);
  manifest.network.push_back(std::move(rule));
}

}  // namespace

void ReadNetwork(const TomlNode& table, Manifest& manifest, MistakeList& mistakes) {
  TableReader reader(table, "network", mistakes);
  if (reader.Find("allow") == nullptr) {
    mistakes.Add(table.at, "[network] allows nothing",
                 "write [[network.allow]], or leave the table out: there is no network by default");
  }
  for (const TomlNode* rule : reader.Tables("allow")) {
    ReadRule(*rule, manifest, mistakes);
  }
}

}  // namespace coffer::policy
