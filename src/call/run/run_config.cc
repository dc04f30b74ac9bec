// SPDX-License-Identifier: Apache-2.0
#include "call/run/run_config.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <variant>

#include "base/regular_file.h"
#include "base/sys.h"
#include "base/text.h"
#include "call/run/run_profile.h"
#include "isolation/host_path.h"
#include "policy/manifest/table_reader.h"
#include "policy/manifest/toml_tree.h"

namespace coffer::call {
namespace {

constexpr size_t kLongestConfig = 64 << 10;

std::string AbsoluteFromEnvironment(const char* name) {
  const char* const value = ::getenv(name);
  return value != nullptr && value[0] == '/' ? value : "";
}

Error Wrong(const std::string& file, const std::string& message, std::string hint) {
  return Refused("policy.run_config", file + ": " + message, std::move(hint));
}

// The file's text; nothing if it is not there.
Result<std::string> ReadOwnFile(const std::string& file) {
  const Result<UniqueFd> fd = sys::OpenRegular(file, O_RDONLY | O_NOFOLLOW);
  // One that is out of reach is another user's (su without a login keeps HOME): then there are no toolchains.
  if (!fd.ok() && (fd.error().sys_errno == ENOENT || fd.error().sys_errno == ENOTDIR ||
                   fd.error().sys_errno == EACCES)) {
    return std::string();
  }
  struct stat info{};
  if (!fd.ok() || ::fstat(fd->get(), &info) != 0 ||
      (info.st_uid != ::geteuid() && info.st_uid != 0) ||
      (info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Wrong(file, "it must be a file of your own that no other user can change",
                 "chmod 644 " + file);
  }
  Result<std::string> text = sys::ReadFd(fd->get(), kLongestConfig);
  if (!text.ok()) {
    return Wrong(file, text.error().message, "a list of toolchains is short");
  }
  return text;
}

Result<std::string> OpenToolchain(const std::string& file, std::string given) {
  if (given == "~" || given.starts_with("~/")) {
    given = AbsoluteFromEnvironment("HOME") + given.substr(1);
  }
  if (!given.starts_with('/')) {
    return Wrong(file, fmt::format("the toolchain {} is not an absolute path", given),
                 "write /srv/tools or ~/tools");
  }
  Result<isolation::HostPath> path = isolation::OpenHostPath(given, policy::Access::kRead);
  if (!path.ok()) {
    return Wrong(file, path.error().message, path.error().hint);
  }
  if (!path->directory) {
    return Wrong(file, fmt::format("the toolchain {} is not a directory", given), "");
  }
  return path->path;
}

}  // namespace

Result<RunConfig> ReadRunConfig() {
  RunConfig config;
  const std::string home = AbsoluteFromEnvironment("HOME");
  const std::string base = AbsoluteFromEnvironment("XDG_CONFIG_HOME");
  if (home.empty() && base.empty()) {
    return config;
  }
  config.directory = (base.empty() ? home + "/.config" : base) + "/coffer";
  const std::string file = config.directory + "/run.toml";
  TRY_ASSIGN(const std::string text, ReadOwnFile(file));
  if (text.empty()) {
    return config;
  }
  const std::variant<policy::TomlNode, policy::Mistake> tree = policy::ReadToml(text);
  policy::MistakeList mistakes;
  std::vector<std::string> toolchains;
  if (const auto* const mistake = std::get_if<policy::Mistake>(&tree)) {
    return Refused("policy.run_config", policy::FormatMistake(file, *mistake));
  }
  policy::TableReader reader(std::get<policy::TomlNode>(tree), "",
                             std::vector<std::string_view>{"toolchains", "profile"}, mistakes);
  if (auto given = reader.Strings("toolchains")) {
    toolchains = std::move(*given);
  }
  if (const policy::TomlNode* const profiles = reader.Table("profile")) {
    for (const policy::TomlEntry& entry : profiles->entries) {
      if (entry.value.kind == policy::TomlKind::kTable) {
        config.profiles[entry.key] = ProfileWords(entry.value, mistakes);
      } else {
        mistakes.Add(entry.at, "a profile is a table", "write [profile.NAME]");
      }
    }
  }
  if (!mistakes.empty()) {
    return Refused("policy.run_config", policy::FormatMistake(file, mistakes.Take().front()),
                   "it holds toolchains = [\"DIRECTORY\", ...] and tables [profile.NAME]");
  }
  for (std::string& given : toolchains) {
    TRY_ASSIGN(std::string toolchain, OpenToolchain(file, std::move(given)));
    config.toolchains.push_back(std::move(toolchain));
  }
  return config;
}

Result<std::vector<std::string>> FindProfile(const RunConfig& config, const std::string& name) {
  if (const auto found = config.profiles.find(name); found != config.profiles.end()) {
    return found->second;
  }
  std::vector<std::string_view> names;
  for (const auto& [known, words] : config.profiles) {
    names.push_back(known);
  }
  const std::string_view nearest = policy::NearestWord(name, names);
  return Refused("policy.usage", fmt::format("there is no profile called {}", Printable(name)),
                 !nearest.empty()           ? fmt::format("did you mean {}?", nearest)
                 : config.directory.empty() ? "profiles are in ~/.config/coffer/run.toml"
                                            : fmt::format("add [profile.{}] to {}/run.toml",
                                                          Printable(name), config.directory));
}

}  // namespace coffer::call
