// SPDX-License-Identifier: Apache-2.0
#include "policy/envelope.h"

#include <array>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/json.h"
#include "policy/scrub.h"

namespace coffer::policy {

std::string_view LevelName(Level level) {
  switch (level) {
    case Level::kProcess:
      return "process";
    case Level::kContainer:
      return "container";
    case Level::kAuto:
      break;
  }
  return "auto";
}

std::optional<Level> FindLevel(std::string_view name) {
  for (const Level level : {Level::kProcess, Level::kContainer, Level::kAuto}) {
    if (LevelName(level) == name) {
      return level;
    }
  }
  return std::nullopt;
}

std::string_view SyscallProfileName(SyscallProfile profile) {
  static constexpr std::array<std::string_view, 4> kNames = {"strict", "default", "compat",
                                                             "imported"};
  return kNames[static_cast<size_t>(profile)];
}

std::string CanonicalForm(const Envelope& envelope) {
  Json json;
  json["level"] = LevelName(envelope.level);
  Json& floor = json["floor"] = Json::array();
  for (const Layer layer : envelope.floor.list()) {
    floor.push_back(LayerName(layer));
  }
  const Limits& limits = envelope.limits;
  json["limits"] = {{"cpu_ns", limits.cpu.count()},    {"wall_ns", limits.wall.count()},
                    {"memory", limits.memory},         {"processes", limits.processes},
                    {"open_files", limits.open_files}, {"disk", limits.disk},
                    {"inodes", limits.inodes},         {"io", limits.io},
                    {"output", limits.output},         {"tmp", limits.tmp}};
  Json& mounts = json["mounts"] = Json::array();
  for (const Mount& mount : envelope.mounts) {
    mounts.push_back({{"host", mount.host},
                      {"at", mount.at},
                      {"access", mount.access == Access::kWrite ? "write" : "read"}});
    if (mount.dangerous) {
      mounts.back()["dangerous"] = true;
    }
    if (mount.system) {
      mounts.back()["system"] = true;
    }
  }
  if (!envelope.workspace.empty()) {
    json["workspace"] = {
        {"host", envelope.workspace},
        {"access", envelope.workspace_access == Access::kWrite ? "write" : "read"}};
  }
  json["inputs"] = envelope.inputs;
  json["runtimes"] = envelope.runtimes;
  if (!envelope.optional_runtimes.empty()) {
    json["optional_runtimes"] = envelope.optional_runtimes;
  }
  if (envelope.exec) {
    json["exec"] = true;
  }
  if (envelope.overlay) {
    json["overlay"] = true;
  }
  if (!envelope.exports.empty()) {
    json["exports"] = envelope.exports;
  }
  Json& env = json["env"] = Json::array();
  for (const auto& [name, value] : envelope.env) {
    // A value may be a secret, and the hash of one that can be guessed tells it.
    env.push_back({name, HashOf(IsSecretName(name) ? "<redacted: value>" : ScrubText(value))});
  }
  json["cwd"] = envelope.cwd;
  json["uid"] = envelope.uid;
  json["network"] = envelope.network.empty() ? Json("none") : Json(envelope.network);
  if (envelope.connections > 0) {
    json["connections"] = envelope.connections;
  }
  json["syscalls"] = SyscallProfileName(envelope.syscalls);
  if (!envelope.imported_seccomp.empty()) {
    json["seccomp"] = HashOf(envelope.imported_seccomp);
  }
  json["tty"] = envelope.tty;
  return PrintJson(json);
}

std::string EnvelopeId(const Envelope& envelope) { return HashOf(CanonicalForm(envelope)); }

}  // namespace coffer::policy
