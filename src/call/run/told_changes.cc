// SPDX-License-Identifier: Apache-2.0
#include "call/run/told_changes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/regular_file.h"
#include "base/sys.h"

namespace coffer::call {
namespace {

constexpr size_t kLongestFile = 1 << 20;
constexpr const char* kRebaseList = "rebase-merge/git-rebase-todo";

struct Told {
  std::string_view name;
  std::string_view why;  // completes "NAME has changed: "
};
constexpr Told kTold[] = {
    {".npmrc", "npm takes programs, options and registries from it"},
    {".yarnrc", "Yarn takes the program that it starts from it"},
    {".yarnrc.yml", "Yarn takes the program that it starts from it"},
    {".pnpmfile.cjs", "pnpm runs it"},
    {".cargo/config.toml", "cargo takes programs and options from it"},
    {".cargo/config", "cargo takes programs and options from it"},
    {".mvn/jvm.config", "Maven takes options from it"},
    {".mvn/extensions.xml", "Maven runs what it names"},
    {"AGENTS.md", "agents on this host take it for instructions"},
    {"CLAUDE.md", "agents on this host take it for instructions"},
    {"GEMINI.md", "agents on this host take it for instructions"},
    {".cursorrules", "agents on this host take it for instructions"},
    {".windsurfrules", "agents on this host take it for instructions"},
    {".github/copilot-instructions.md", "agents on this host take it for instructions"},
};

// "" if it is not a file that can be read. A link is not followed.
std::string ReadText(int directory, const std::string& name) {
  const Result<UniqueFd> file = sys::OpenNoLinks(directory, name, O_PATH);
  if (!file.ok()) {
    return {};
  }
  const Result<UniqueFd> readable = sys::ReopenRegular(file->get(), name, O_RDONLY);
  Result<std::string> text = readable.ok() ? sys::ReadFd(readable->get(), kLongestFile)
                                           : Result<std::string>(std::string());
  return text.ok() ? std::move(text).value() : std::string();
}

// Where a link leads counts, so that one in the place of a file is a change.
std::string StateOf(const isolation::HostPath& root, const std::string& name) {
  std::array<char, 4096> target{};
  const ssize_t size = ::readlinkat(root.fd.get(), name.c_str(), target.data(), target.size());
  return size > 0 ? "link to " + std::string(target.data(), static_cast<size_t>(size))
                  : ReadText(root.fd.get(), name);
}

// What `npm run` would start: the scripts, or the whole text if it cannot be read as JSON.
std::string ScriptsOf(const isolation::HostPath& root) {
  std::string text = ReadText(root.fd.get(), "package.json");
  const Result<Json> json = ParseJson(text);
  if (!json.ok() || !json->is_object()) {
    return text;
  }
  const auto scripts = json->find("scripts");
  return scripts == json->end() ? std::string() : PrintJson(*scripts);
}

bool IsThere(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0;
}

// Not empty while a rebase waits to be continued.
std::string RebaseOf(const std::string& git_directory) {
  if (git_directory.empty() ||
      (!IsThere(git_directory + "/rebase-merge") && !IsThere(git_directory + "/rebase-apply"))) {
    return {};
  }
  return "begun\n" + ReadText(AT_FDCWD, git_directory + "/" + kRebaseList);
}

}  // namespace

ToldChanges::ToldChanges(const isolation::HostPath& root, std::string git_directory)
    : git_directory_(std::move(git_directory)) {
  before_["package.json"] = ScriptsOf(root);
  before_[kRebaseList] = RebaseOf(git_directory_);
  for (const Told& told : kTold) {
    before_[std::string(told.name)] = StateOf(root, std::string(told.name));
  }
}

std::vector<std::string> ToldChanges::Find(const isolation::HostPath& root) const {
  std::vector<std::string> notes;
  if (ScriptsOf(root) != before_.at("package.json")) {
    notes.emplace_back("the scripts of package.json have changed: read them before you run them");
  }
  for (const Told& told : kTold) {
    const std::string name(told.name);
    const std::string now = StateOf(root, name);
    if (!now.empty() && now != before_.at(name)) {
      notes.push_back(fmt::format("{} has changed: {}", name, told.why));
    }
  }
  const std::string rebase = RebaseOf(git_directory_);
  if (!rebase.empty() && rebase != before_.at(kRebaseList)) {
    notes.emplace_back(
        "a rebase was begun and not ended, or its list has changed: git rebase --continue runs "
        "what it says");
  }
  return notes;
}

}  // namespace coffer::call
