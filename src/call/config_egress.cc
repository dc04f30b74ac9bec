// SPDX-License-Identifier: Apache-2.0
#include "call/config_egress.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/regular_file.h"
#include "base/text.h"
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

}  // namespace

void ReadEgressConfig(TableReader& root, EgressFileConfig& config, MistakeList& mistakes) {
  const TomlNode* const table = root.Table("egress");
  if (table == nullptr) {
    return;
  }
  TableReader reader(
      *table, "egress",
      std::vector<std::string_view>{"resolve", "dangerously_addresses", "upstream_ca", "sets"},
      mistakes);
  policy::EgressConfig& egress = config.egress;
  egress.resolve = ReadTexts(reader, "resolve", kMostEntries, mistakes,
                             [](const std::string& text) { return policy::ParseResolve(text); });
  egress.addresses =
      ReadTexts(reader, "dangerously_addresses", kMostEntries, mistakes,
                [](const std::string& text) { return policy::ParseOpenRange(text); });
  config.upstream_ca_file = reader.String("upstream_ca").value_or("");
  if (!config.upstream_ca_file.empty() && config.upstream_ca_file.front() != '/') {
    reader.Add("upstream_ca", "not an absolute path", "begin it with /");
  }
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

}  // namespace coffer::call
