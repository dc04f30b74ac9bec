// SPDX-License-Identifier: Apache-2.0
//
// What a tool is granted outside its boundary: files and credentials; network.cc has the hosts.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "policy/export_pattern.h"
#include "policy/manifest/rules.h"
#include "policy/manifest/sections.h"

namespace coffer::policy {
namespace {

constexpr size_t kShortestReason = 10;

bool Overlap(std::string_view a, std::string_view b) {
  const auto within = [](std::string_view path, std::string_view tree) {
    return path == tree || (path.starts_with(tree) && path[tree.size()] == '/');
  };
  return within(a, b) || within(b, a);
}

void ReadMount(const TomlNode& table, Manifest& manifest, MistakeList& mistakes) {
  TableReader reader(table, "files.mount", mistakes);
  FileMount mount;
  const auto mode = reader.Choice("mode", {"read", "staged", "write"});
  mount.mode = static_cast<MountMode>(mode.value_or(0));
  // Whether a directory is the system's or root's is seen where it is opened. So a writable one may
  // be called dangerous.
  const auto judge = [&](std::string_view path) {
    std::optional<Objection> objection = ObjectToHostPath(path);
    if (!objection && mount.mode != MountMode::kRead &&
        reader.Find("dangerously_host") != nullptr) {
      objection = Objection{"writable", "", false};
    }
    return objection;
  };
  const auto host = ReadHost(reader, "\"/srv/invoices\"", judge, mount.dangerous, manifest);
  CheckReasonIsUsed(reader, reader.Find("dangerously_host") != nullptr);
  mount.host = host.value_or("");
  mount.position = reader.PositionOf(reader.Find("host") != nullptr ? "host" : "dangerously_host");
  const auto at = reader.Required("at", "\"/data\"");
  if (at) {
    if (const auto objection = ObjectToMountPoint(*at)) {
      reader.Add("at", objection->message, objection->hint);
    }
    mount.at = *at;
    for (const FileMount& other : manifest.mounts) {
      if (!other.at.empty() && Overlap(other.at, mount.at)) {
        reader.Add("at", fmt::format("{} and {} overlap", Printable(other.at), Printable(mount.at)),
                   "give each mount a place of its own");
      }
    }
  }
  manifest.mounts.push_back(std::move(mount));
}

void ReadExports(TableReader& reader, Manifest& manifest, MistakeList& mistakes) {
  auto patterns = reader.Strings("exports");
  if (!patterns) {
    return;
  }
  for (size_t i = 0; i < patterns->size(); ++i) {
    if (!IsExportPattern((*patterns)[i])) {
      mistakes.Add(
          reader.Find("exports")->value.items[i].at,
          fmt::format("files.exports: \"{}\" is not a path in /workspace",
                      Printable((*patterns)[i])),
          "write it from there, without \"..\": \"report.html\", \"plots/*.png\", \"site/**\"");
    }
  }
  if (patterns->size() > kMostExportPatterns) {
    reader.Add("exports", fmt::format("more than {} patterns", kMostExportPatterns),
               "let the tool put them into a directory, and write \"that/**\"");
  }
  manifest.exports = std::move(*patterns);
}

// "Name: value with one {}".
bool IsHeader(std::string_view text) {
  const size_t colon = text.find(": ");
  const size_t slot = text.find("{}");
  const bool name = colon != std::string_view::npos && colon > 0 &&
                    std::all_of(text.begin(), text.begin() + static_cast<long>(colon),
                                [](unsigned char c) { return std::isalnum(c) != 0 || c == '-'; });
  return name && slot != std::string_view::npos && slot > colon &&
         text.find_first_of("{}", slot + 2) == std::string_view::npos && text.find('{') == slot &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return c >= 0x20 && c < 0x7f; });
}

}  // namespace

std::optional<std::string> ReadHost(
    TableReader& reader, std::string_view example,
    const std::function<std::optional<Objection>(std::string_view)>& object, bool& dangerous,
    Manifest& manifest) {
  const bool plain = reader.Find("host") != nullptr;
  const bool danger = reader.Find("dangerously_host") != nullptr;
  if (plain && danger) {
    reader.Add("dangerously_host", "beside host", "keep one of them");
    return std::nullopt;
  }
  if (!danger) {
    auto host = reader.Required("host", example);
    if (!host) {
      return std::nullopt;
    }
    if (const std::optional<Objection> objection = object(*host)) {
      reader.Add("host", objection->message, objection->hint);
      return std::nullopt;
    }
    return host;
  }
  auto host = reader.String("dangerously_host");
  if (!host) {
    return std::nullopt;
  }
  const std::optional<Objection> objection = object(*host);
  if (!objection) {
    reader.Add("dangerously_host", fmt::format("nothing is dangerous about {}", Printable(*host)),
               "write host, without a reason");
    return std::nullopt;
  }
  if (objection->final) {
    reader.Add("dangerously_host", objection->message, objection->hint);
    return std::nullopt;
  }
  dangerous = true;
  GrantDanger(reader, "dangerously_host", *host, manifest);
  return host;
}

void GrantDanger(TableReader& reader, std::string_view key, std::string value, Manifest& manifest) {
  const auto reason = reader.String("reason");
  if (!reason || reason->size() < kShortestReason) {
    reader.Add(reason ? "reason" : key, fmt::format("{} needs a reason", key),
               "write reason = \"why nothing narrower will do\" beside it");
    return;
  }
  manifest.dangers.push_back(
      {reader.NameOf(key), std::move(value), *reason, reader.PositionOf(key)});
}

void CheckReasonIsUsed(TableReader& reader, bool dangerous) {
  if (!dangerous && reader.Find("reason") != nullptr) {
    reader.Add("reason", "nothing dangerous is granted here", "leave it out");
  }
}

void ReadFiles(const TomlNode& table, Manifest& manifest, MistakeList& mistakes) {
  TableReader reader(table, "files", mistakes);
  if (const auto choice = reader.Choice("workspace", {"fresh", "session-read", "session-write"})) {
    manifest.workspace = static_cast<Workspace>(*choice);
  }
  manifest.exec = reader.Boolean("exec").value_or(false);
  manifest.overlay = reader.Boolean("overlay").value_or(false);
  ReadExports(reader, manifest, mistakes);
  for (const TomlNode* mount : reader.Tables("mount")) {
    ReadMount(*mount, manifest, mistakes);
  }
  if (manifest.mounts.size() > 32) {
    reader.Add("mount", "more than 32 mounts", "mount a directory that holds them");
  }
}

void ReadCredentials(const std::vector<const TomlNode*>& tables, Manifest& manifest,
                     MistakeList& mistakes) {
  for (const TomlNode* table : tables) {
    TableReader reader(*table, "credentials", mistakes);
    CredentialRule rule;
    rule.position = table->at;
    rule.name = reader.Required("name", "\"billing\"").value_or("");
    const bool twice =
        std::any_of(manifest.credentials.begin(), manifest.credentials.end(),
                    [&](const CredentialRule& other) { return other.name == rule.name; });
    if (twice && !rule.name.empty()) {
      reader.Add("name", fmt::format("\"{}\" twice", Printable(rule.name)), "one entry for each");
    }
    if (!rule.name.empty() && !IsParameterName(rule.name)) {
      reader.Add("name", fmt::format("\"{}\" is not a credential's name", Printable(rule.name)),
                 "letters, digits, _ and -, beginning with a letter");
    }
    rule.scope = reader.Required("scope", "\"invoices:read\"").value_or("");
    if (reader.Find("hosts") == nullptr) {
      mistakes.Add(table->at, "credentials.hosts is missing",
                   "write hosts = [\"api.example.com\"]");
    }
    rule.hosts = reader.Strings("hosts").value_or(std::vector<std::string>());
    for (size_t i = 0; i < rule.hosts.size(); ++i) {
      const bool allowed = std::any_of(
          manifest.network.begin(), manifest.network.end(),
          [&](const NetworkRule& r) { return !r.any_host && HostCovers(r.host, rule.hosts[i]); });
      if (!allowed) {
        mistakes.Add(reader.Find("hosts")->value.items[i].at,
                     fmt::format("credentials.hosts: {} is in no [[network.allow]]",
                                 Printable(rule.hosts[i])),
                     "a credential goes only to hosts that are allowed by name");
      }
    }
    rule.header = reader.Required("header", "\"Authorization: Bearer {}\"").value_or("");
    if (!rule.header.empty() && !IsHeader(rule.header)) {
      reader.Add("header",
                 fmt::format("\"{}\" is not a header with one {{}}", Printable(rule.header)),
                 "write it as \"Authorization: Bearer {}\"");
    }
    manifest.credentials.push_back(std::move(rule));
  }
}

}  // namespace coffer::policy
