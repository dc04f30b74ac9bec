// SPDX-License-Identifier: Apache-2.0
#include "isolation/git_programs.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "base/regular_file.h"
#include "base/sys.h"
#include "isolation/git_config.h"
#include "isolation/home_directories.h"
#include "isolation/runtime/real_path.h"

namespace coffer::isolation {
namespace {

constexpr size_t kLongestConfig = 8 << 20;
constexpr size_t kLongestLine = 8192;
constexpr size_t kMostConfigs = 32;  // one and what it includes; git itself stops at ten levels
constexpr std::string_view kNoPrograms[] = {"advice", "author", "branch", "color", "committer",
                                            "fetch",  "log",    "pack",   "pull",  "push",
                                            "safe",   "status", "url",    "user"};
// What can stand around a path in a line for the shell.
constexpr std::string_view kBetweenWords = " \t\n;|&()<>'\"`=,";

std::string FromEnvironment(const char* name) {
  const char* const value = ::getenv(name);
  return value != nullptr && value[0] == '/' ? value : "";
}

// A path of a configuration or a pointer, as git expands it.
std::string Expanded(const std::string& base, std::string_view path) {
  if (path.starts_with('~')) {
    const size_t end = std::min(path.find('/'), path.size());
    const std::string_view user = path.substr(1, end - 1);
    const std::string home = user.empty() ? FromEnvironment("HOME") : HomeOf(user);
    return home.empty() ? std::string() : Normalize(home + std::string(path.substr(end)));
  }
  return Normalize(path.starts_with('/') ? std::string(path) : base + "/" + std::string(path));
}

// The one line of a file of git, without its end; "" if it cannot be read.
std::string LineOf(const std::string& file) {
  const Result<std::string> text = sys::ReadRegular(file, kLongestLine);
  return text.ok() ? text->substr(0, text->find_last_not_of(" \t\r\n") + 1) : std::string();
}

class Search {
 public:
  Search(const HostPath& root, std::vector<std::string> worktrees)
      : root_(root), worktrees_(std::move(worktrees)) {}

  void Read(const std::string& config) {
    if (!read_.insert(config).second || read_.size() > kMostConfigs) {
      return;
    }
    const Result<std::string> text = sys::ReadRegular(config, kLongestConfig);
    if (!text.ok()) {
      return;
    }
    const std::string directory(DirName(config));
    if (const std::string tree = GitConfigValue(*text, "core", "worktree"); !tree.empty()) {
      worktrees_.push_back(Expanded(directory, tree));
    }
    for (const GitSetting& setting : ReadGitConfig(*text)) {
      Look(setting, directory);
    }
  }

  std::vector<std::string> Take() { return {found_.begin(), found_.end()}; }

 private:
  void Look(const GitSetting& setting, const std::string& directory) {
    if (std::find(std::begin(kNoPrograms), std::end(kNoPrograms), setting.section) !=
        std::end(kNoPrograms)) {
      return;
    }
    if ((setting.section == "include" || setting.section == "includeif") && setting.key == "path") {
      const std::string included = Expanded(directory, setting.value);
      Add(included, Demand::kNothing);
      Read(included);
      return;
    }
    const bool command = setting.value.starts_with('!');
    if ((setting.section == "core" && setting.key == "hookspath") ||
        (setting.section == "init" && setting.key == "templatedir")) {
      AddIn(setting.value, Demand::kNothing);  // hooks of new repositories come from a template
    } else if ((setting.section != "alias" && setting.section != "submodule") || command) {
      if (setting.value.find('/') != std::string::npos) {
        AddIn(setting.value, Demand::kFile);  // its spaces may be part of a name
      }
      LookAtWords(setting.value);
    }
  }

  // The first word is a program: without a slash it is looked up on PATH, not in the project.
  void LookAtWords(std::string_view value) {
    bool first = true;
    for (size_t at = 0; at < value.size();) {
      const size_t end = std::min(value.find_first_of(kBetweenWords, at), value.size());
      std::string_view word = value.substr(at, end - at);
      at = end + 1;
      if (word.starts_with('!')) {
        word.remove_prefix(1);  // an alias that is a command
      }
      if (word.empty()) {
        continue;
      }
      if (!first || word.find('/') != std::string_view::npos) {
        AddIn(word, Demand::kFile);
      }
      first = false;
    }
  }

  enum class Demand : uint8_t { kNothing, kFile };
  void AddIn(std::string_view path, Demand demand) {
    for (const std::string& base : worktrees_) {
      Add(Expanded(base, path), demand);
    }
  }

  void Add(const std::string& path, Demand demand) {
    if (path == root_.path || !IsAtOrBelow(path, root_.path)) {
      return;
    }
    const std::string name = path.substr(root_.path.size() + 1);
    struct stat info{};
    const bool there = ::fstatat(root_.fd.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
    if (demand == Demand::kNothing || (there && (S_ISREG(info.st_mode) || S_ISLNK(info.st_mode)))) {
      found_.insert(name);
    }
  }

  const HostPath& root_;
  std::vector<std::string> worktrees_;
  std::set<std::string> read_;
  std::set<std::string> found_;
};

}  // namespace

std::vector<std::string> FilesOfGitConfig(const HostPath& root, const std::string& config,
                                          const std::vector<std::string>& worktrees) {
  Search search(root, worktrees);
  search.Read(config);
  return search.Take();
}

std::vector<std::string> GlobalGitConfigs() {
  const std::string home = FromEnvironment("HOME");
  const std::string base = FromEnvironment("XDG_CONFIG_HOME");
  std::vector<std::string> configs = {"/etc/gitconfig", home + "/.gitconfig",
                                      (base.empty() ? home + "/.config" : base) + "/git/config"};
  for (const char* const name : {"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"}) {
    if (std::string given = FromEnvironment(name); !given.empty()) {
      configs.push_back(Normalize(given));
    }
  }
  return configs;
}

std::vector<std::string> GitConfigsAt(const std::string& directory) {
  std::string git = directory + "/.git";
  struct stat info{};
  if (::stat(git.c_str(), &info) != 0) {
    git = directory;  // a bare repository, or none
  } else if (S_ISREG(info.st_mode)) {
    constexpr std::string_view kPointer = "gitdir:";
    const std::string line = LineOf(git);
    const size_t from = line.find_first_not_of(" \t", kPointer.size());
    if (!line.starts_with(kPointer) || from == std::string::npos) {
      return {};
    }
    git = Normalize(line[from] == '/' ? line.substr(from) : directory + "/" + line.substr(from));
  }
  if (::stat((git + "/HEAD").c_str(), &info) != 0) {
    return {};
  }
  std::vector<std::string> configs = {git + "/config", git + "/config.worktree"};
  if (const std::string common = LineOf(git + "/commondir"); !common.empty()) {
    configs.push_back(Normalize(common[0] == '/' ? common : git + "/" + common) + "/config");
  }
  return configs;
}

}  // namespace coffer::isolation
