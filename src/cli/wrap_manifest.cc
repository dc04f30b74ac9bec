// SPDX-License-Identifier: Apache-2.0
#include "cli/wrap_manifest.h"

#include <fmt/format.h>

#include "base/quantity.h"
#include "base/regular_file.h"
#include "call/tool_shelf.h"
#include "policy/tool.h"

namespace coffer::cli {
namespace {

constexpr size_t kMaxManifest = size_t{1} << 20;

void AddLimits(const policy::Manifest& manifest, std::vector<std::string>& words) {
  const policy::Limits& limits = manifest.limits;
  const auto add = [&](const char* flag, std::string value) {
    words.emplace_back(flag);
    words.push_back(std::move(value));
  };
  if (manifest.background) {
    add("--wall", FormatDuration(manifest.background->wall));
    add("--cpu", FormatDuration(manifest.background->cpu));
  }
  add("--memory", std::to_string(limits.memory));
  add("--processes", std::to_string(limits.processes));
  add("--open-files", std::to_string(limits.open_files));
  add("--disk", std::to_string(limits.disk));
  add("--io", std::to_string(limits.io));
  add("--tmp", std::to_string(limits.tmp));
}

Status AddMounts(const policy::Manifest& manifest, std::vector<std::string>& words) {
  for (const policy::FileMount& mount : manifest.mounts) {
    if (mount.dangerous) {
      return Refused(
          "policy.usage",
          fmt::format("the mount at {} is dangerous, and a wrapped server cannot have it",
                      mount.at),
          "narrow the mount");
    }
    words.emplace_back(mount.mode == policy::MountMode::kWrite ? "--rw" : "--ro");
    words.push_back(mount.host + ":" + mount.at);
  }
  return {};
}

Status AddVariables(const policy::Manifest& manifest, std::vector<std::string>& words) {
  for (const auto& [name, word] : manifest.run.env) {
    if (word.kind != policy::WordKind::kLiteral) {
      return Refused("policy.usage",
                     fmt::format("the variable {} is a parameter, and a server has none", name),
                     "give it a fixed value");
    }
    words.emplace_back("--env");
    words.push_back(name + "=" + word.text);
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> BoundaryWords(const std::string& file) {
  TRY_ASSIGN(const std::string text, sys::ReadRegular(file, kMaxManifest));
  const policy::LoadedTool loaded = policy::LoadTool(text, file, call::AvailableSurfaces());
  if (!loaded.tool) {
    return Refused("policy.manifest",
                   loaded.mistakes.empty() ? file + " is not a manifest"
                                           : policy::FormatMistake(file, loaded.mistakes.front()),
                   "`coffer tools check` has all mistakes");
  }
  const policy::Manifest& manifest = loaded.tool->manifest;
  std::vector<std::string> words = {
      "--level",   std::string(policy::LevelName(manifest.isolation.level)),
      "--seccomp", std::string(policy::SyscallProfileName(manifest.isolation.syscalls)),
      "--runtime", manifest.run.runtime};
  for (const policy::Layer layer : manifest.isolation.floor.list()) {
    words.emplace_back("--floor");
    words.emplace_back(policy::LayerName(layer));
  }
  if (!manifest.exec) {
    words.emplace_back("--no-exec");
  }
  AddLimits(manifest, words);
  TRY(AddMounts(manifest, words));
  TRY(AddVariables(manifest, words));
  return words;
}

}  // namespace coffer::cli
