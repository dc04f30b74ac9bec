// SPDX-License-Identifier: Apache-2.0
#include "call/config_egress.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"
#include "base/regular_file.h"
#include "base/text.h"
#include "call/never_send_file.h"
#include "call/operator_path.h"
#include "policy/egress_grants.h"
#include "policy/egress_line.h"

namespace coffer::call {
namespace {

using policy::MistakeList;
using policy::TableReader;
using policy::TomlEntry;
using policy::TomlNode;

constexpr size_t kMostSets = 64;
constexpr size_t kMostRules = 128;  // of one set
constexpr size_t kMostEntries = 256;
constexpr size_t kMostDenied = 128;
constexpr uint64_t kMostConnections = 1000;
constexpr int64_t kMostHoldSeconds = 3600;  // as egress/access.h has it
constexpr size_t kMostCaBytes = 1 << 20;

// Each text of a list that `parse` does not take is a mistake at its place.
std::vector<std::string> ReadTexts(TableReader& reader, std::string_view key, size_t most,
                                   MistakeList& mistakes, const auto& parse) {
  std::vector<std::string> texts = reader.Strings(key).value_or(std::vector<std::string>());
  for (size_t i = 0; i < texts.size(); ++i) {
    if (const auto parsed = parse(texts[i]); !parsed.ok()) {
      mistakes.Add(reader.Find(key)->value.items[i].at,
                   fmt::format("{}: {}", reader.NameOf(key), Printable(parsed.error().message)),
                   parsed.error().hint);
    }
  }
  if (texts.size() > most) {
    reader.Add(key, fmt::format("more than {}", most), "keep those that are needed");
  }
  return texts;
}

void ReadSets(const TomlNode& table, policy::EgressConfig& egress, MistakeList& mistakes) {
  std::vector<std::string_view> names;
  for (const TomlEntry& entry : table.entries) {
    names.push_back(entry.key);
  }
  TableReader reader(table, "egress.sets", names, mistakes);
  for (const std::string_view name : names) {
    if (!policy::IsSetName(name)) {
      reader.Add(name, "not the name of a set",
                 "write 1 to 64 lower-case letters, digits, dashes and underscores");
      continue;
    }
    egress.sets.emplace_back(
        name, ReadTexts(reader, name, kMostRules, mistakes,
                        [](const std::string& text) { return policy::ParseAllow(text); }));
  }
  if (names.size() > kMostSets) {
    mistakes.Add(table.at, fmt::format("egress.sets: more than {}", kMostSets),
                 "keep those that manifests name");
  }
  std::sort(egress.sets.begin(), egress.sets.end());
}

// The absolute path of a file; "" if none is named.
std::string ReadPath(TableReader& reader, std::string_view key) {
  const std::optional<std::string> path = reader.String(key);
  if (path && !path->starts_with('/')) {
    reader.Add(key, "not an absolute path", "begin it with /");
  }
  return path.value_or("");
}

void ReadProxy(TableReader& reader, policy::EgressConfig& egress, MistakeList& mistakes) {
  egress.upstream_proxy = reader.String("upstream_proxy").value_or("");
  if (!egress.upstream_proxy.empty()) {
    if (Result<policy::HostAndPort> proxy = policy::ParseUpstreamProxy(egress.upstream_proxy);
        !proxy.ok()) {
      reader.Add("upstream_proxy", std::move(proxy.error()));
    }
  }
  egress.proxied =
      ReadTexts(reader, "proxied", kMostEntries, mistakes,
                [](const std::string& text) { return policy::HostPattern::Parse(text); });
  if (!egress.proxied.empty() && egress.upstream_proxy.empty()) {
    reader.Add("proxied", "hosts without a proxy", "write upstream_proxy beside it");
  }
}

// What no manifest can exceed.
void ReadEgressCeilings(TableReader& reader, policy::EgressConfig& egress, MistakeList& mistakes) {
  egress.deny = ReadTexts(reader, "deny", kMostDenied, mistakes,
                          [](const std::string& text) { return policy::ParseDeny(text); });
  egress.connections = reader.Count("max_connections", 1, kMostConnections).value_or(0);
  reader.Parsed(egress.bytes_out, "max_bytes_out", ParseSize);
  reader.Parsed(egress.bytes_in, "max_bytes_in", ParseSize);
  Nanos hold = std::chrono::seconds(egress.hold_seconds);
  reader.Duration(hold, "hold_time");
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(hold).count();
  if (seconds < 1 || seconds > kMostHoldSeconds) {
    reader.Add("hold_time", "not from 1s to 1h", "such as \"2m\"");
  } else {
    egress.hold_seconds = static_cast<uint32_t>(seconds);
  }
}

}  // namespace

void ReadEgressConfig(TableReader& root, EgressFileConfig& config, MistakeList& mistakes) {
  const TomlNode* const table = root.Table("egress");
  if (table == nullptr) {
    return;
  }
  TableReader reader(
      *table, "egress",
      std::vector<std::string_view>{
          "resolve", "dangerously_addresses", "upstream_ca", "upstream_proxy", "proxied", "deny",
          "max_connections", "max_bytes_out", "max_bytes_in", "hold_time", "sets", "never_send"},
      mistakes);
  policy::EgressConfig& egress = config.egress;
  egress.resolve = ReadTexts(reader, "resolve", kMostEntries, mistakes,
                             [](const std::string& text) { return policy::ParseResolve(text); });
  egress.addresses =
      ReadTexts(reader, "dangerously_addresses", kMostEntries, mistakes,
                [](const std::string& text) { return policy::ParseOpenRange(text); });
  config.upstream_ca_file = ReadPath(reader, "upstream_ca");
  config.never_send_file = ReadPath(reader, "never_send");
  ReadProxy(reader, egress, mistakes);
  ReadEgressCeilings(reader, egress, mistakes);
  if (const TomlNode* const sets = reader.Table("sets")) {
    ReadSets(*sets, egress, mistakes);
  }
}

Result<policy::EgressConfig> LoadEgressConfig(const EgressFileConfig& config,
                                              std::optional<uid_t> operator_uid) {
  policy::EgressConfig egress = config.egress;
  const std::string& file = config.upstream_ca_file;
  if (file.empty()) {
    return egress;
  }
  Result<std::string> text = operator_uid ? ReadOperatorFile(file, *operator_uid, kMostCaBytes)
                                          : sys::ReadRegular(file, kMostCaBytes);
  if (!text.ok()) {
    return Refused("policy.config", fmt::format("egress.upstream_ca: {}", text.error().message),
                   "name a PEM file of yours that every user can read and only you can change");
  }
  if (text->find("-----BEGIN CERTIFICATE-----") == std::string::npos) {
    return Refused("policy.config",
                   fmt::format("egress.upstream_ca: {} holds no certificate", Printable(file)),
                   "give a PEM file with BEGIN CERTIFICATE in it");
  }
  // Texts between the roles hold no NUL, and a PEM file has no use for one.
  if (text->find('\0') != std::string::npos) {
    return Refused("policy.config",
                   fmt::format("egress.upstream_ca: {} is not text", Printable(file)),
                   "give a PEM file, not DER");
  }
  egress.upstream_ca = std::move(text).value();
  return egress;
}

Result<std::string> LoadNeverSend(const EgressFileConfig& config,
                                  std::optional<uid_t> operator_uid) {
  return config.never_send_file.empty()
             ? std::string()
             : ReadNeverSendFile(config.never_send_file, operator_uid, "egress.never_send");
}

}  // namespace coffer::call
