// SPDX-License-Identifier: Apache-2.0
#include "policy/blast_radius.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/quantity.h"
#include "base/text.h"

namespace coffer::policy {
namespace {

bool Changes(std::string_view method) {
  return method != "GET" && method != "HEAD" && method != "OPTIONS";
}

std::string PortText(const PortRange& range) {
  return range.first == range.last ? fmt::format("{}", range.first)
                                   : fmt::format("{}-{}", range.first, range.last);
}

std::string Joined(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

void AddFiles(const Envelope& envelope, BlastRadius& radius) {
  for (const Mount& mount : envelope.mounts) {
    radius.dangerous = radius.dangerous || mount.dangerous;
    if (mount.access == Access::kWrite) {
      radius.changes.push_back({mount.host, envelope.limits.disk, envelope.limits.inodes});
    } else {
      radius.reads.push_back(mount.host);
    }
  }
  radius.reads.insert(radius.reads.end(), envelope.inputs.begin(), envelope.inputs.end());
  if (!envelope.workspace.empty()) {
    if (envelope.workspace_access == Access::kWrite) {
      radius.changes.push_back(
          {"the session's workspace", envelope.limits.disk, envelope.limits.inodes});
    } else {
      radius.reads.emplace_back("the session's workspace");
    }
  }
}

void AddNetwork(const std::vector<NetworkRule>& network, BlastRadius& radius) {
  for (const NetworkRule& rule : network) {
    BlastRadius::Reach reach;
    reach.host = rule.any_host ? "any host" : rule.host;
    for (const PortRange& range : rule.ports) {
      reach.ports.push_back(PortText(range));
    }
    // Without a list anything may be sent.
    reach.methods = rule.methods.empty() ? std::vector<std::string>{"any method"} : rule.methods;
    reach.writes =
        rule.methods.empty() || std::any_of(rule.methods.begin(), rule.methods.end(), Changes);
    radius.dangerous = radius.dangerous || rule.dangerous;
    radius.reaches.push_back(std::move(reach));
  }
}

}  // namespace

BlastRadius ComputeBlastRadius(const Envelope& envelope, const std::vector<NetworkRule>& network,
                               const std::vector<LeaseGrant>& leases, Effect effect) {
  BlastRadius radius;
  radius.effect = effect;
  AddFiles(envelope, radius);
  AddNetwork(network, radius);
  radius.leases = leases;
  radius.memory = envelope.limits.memory;
  radius.cpu_seconds =
      static_cast<uint64_t>(std::chrono::ceil<std::chrono::seconds>(envelope.limits.cpu).count());
  if (radius.changes.empty()) {
    radius.cannot.emplace_back("change files of the host");
  }
  if (radius.reaches.empty()) {
    radius.cannot.emplace_back("reach the network");
  }
  // The proxy speaks HTTP only; with nothing but GET there is no way to hand a mail to anybody.
  const bool writes = std::any_of(radius.reaches.begin(), radius.reaches.end(),
                                  [](const BlastRadius::Reach& reach) { return reach.writes; });
  if (!writes) {
    radius.cannot.emplace_back("send mail");
  }
  if (radius.leases.empty()) {
    radius.cannot.emplace_back("use a credential");
  }
  return radius;
}

std::string Sentence(const BlastRadius& radius) {
  std::vector<std::string> parts;
  parts.reserve(radius.changes.size());
  for (const BlastRadius::Files& files : radius.changes) {
    parts.push_back(fmt::format("can change anything under {} and add {} in {} files there",
                                Printable(files.path), FormatSize(files.bytes), files.files));
  }
  if (!radius.reads.empty()) {
    std::vector<std::string> paths;
    paths.reserve(radius.reads.size());
    for (const std::string& path : radius.reads) {
      paths.push_back(Printable(path));
    }
    parts.push_back(fmt::format("can read {}", Joined(paths, " and ")));
  }
  for (const BlastRadius::Reach& reach : radius.reaches) {
    parts.push_back(fmt::format("can reach {}:{} {}", Printable(reach.host),
                                Joined(reach.ports, ","), Joined(reach.methods, "/")));
  }
  for (const LeaseGrant& lease : radius.leases) {
    parts.push_back(fmt::format("can act with {} ({}) at {}", Printable(lease.name),
                                Printable(lease.scope), Printable(Joined(lease.hosts, " and "))));
  }
  for (const std::string& thing : radius.cannot) {
    parts.push_back("cannot " + thing);
  }
  std::string text = Joined(parts, ", ");
  if (radius.effect == Effect::kIrreversible || radius.effect == Effect::kPrivileged) {
    text += fmt::format("; counts as {}", EffectName(radius.effect));
  }
  return text;
}

Json ToJson(const BlastRadius& radius) {
  Json json;
  json["summary"] = Sentence(radius);
  json["effect"] = EffectName(radius.effect);
  Json& changes = json["changes"] = Json::array();
  for (const BlastRadius::Files& files : radius.changes) {
    changes.push_back({{"path", files.path}, {"bytes", files.bytes}, {"files", files.files}});
  }
  json["reads"] = radius.reads;
  Json& reaches = json["reaches"] = Json::array();
  for (const BlastRadius::Reach& reach : radius.reaches) {
    reaches.push_back({{"host", reach.host},
                       {"ports", reach.ports},
                       {"methods", reach.methods},
                       {"writes", reach.writes}});
  }
  Json& leases = json["leases"] = Json::array();
  for (const LeaseGrant& lease : radius.leases) {
    leases.push_back({{"name", lease.name}, {"scope", lease.scope}, {"hosts", lease.hosts}});
  }
  json["cannot"] = radius.cannot;
  json["cpu_seconds"] = radius.cpu_seconds;
  json["memory"] = radius.memory;
  json["dangerous"] = radius.dangerous;
  return json;
}

}  // namespace coffer::policy
