// SPDX-License-Identifier: Apache-2.0
#include "call/run/told_changes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "base/hash.h"
#include "base/json.h"
#include "base/regular_file.h"
#include "base/sys.h"
#include "base/text.h"
#include "isolation/path_directories.h"
#include "isolation/runtime/real_path.h"
#include "isolation/tree_path.h"

namespace coffer::call {
namespace {

constexpr size_t kLongestFile = 1 << 20;
// Where git keeps what it needs to continue.
constexpr const char* kOperations[] = {"rebase-merge", "rebase-apply", "sequencer"};
constexpr size_t kMostTold = 5;  // git directories, or programs

// Old git kept remotes in files. Git still reads a remote from there if the configuration does not name it.
constexpr const char* kRemotes[] = {"remotes", "branches"};

struct Told {
  std::string_view name;
  std::string_view why;  // completes "NAME has changed: "
};
constexpr Told kTold[] = {
    {".npmrc", "npm takes programs, options and registries from it"},
    {".yarnrc", "Yarn takes the program that it starts from it"},
    {".yarnrc.yml", "Yarn takes the program that it starts from it"},
    {".pnpmfile.cjs", "pnpm runs it"},
    {"package.yaml", "pnpm takes scripts from it"},
    {"package.json5", "pnpm takes scripts from it"},
    {"pnpm-workspace.yaml", "pnpm takes programs and options from it"},
    {"bunfig.toml", "bun runs what it names"},
    {".cargo/config.toml", "cargo takes programs and options from it"},
    {".cargo/config", "cargo takes programs and options from it"},
    {"rust-toolchain.toml", "cargo and rustc are the programs that it names"},
    {"rust-toolchain", "cargo and rustc are the programs that it names"},
    {".tool-versions", "asdf and mise take programs from it"},
    {".mvn/jvm.config", "Maven takes options from it"},
    {".mvn/maven.config", "Maven takes options from it"},
    {".mvn/extensions.xml", "Maven runs what it names"},
    {".mvn/wrapper/maven-wrapper.properties", "mvnw runs what it names"},
    {"gradle/wrapper/gradle-wrapper.properties", "gradlew runs what it names"},
    {"gradle/wrapper/gradle-wrapper.jar", "gradlew runs it"},
    {"gradle.properties", "Gradle takes options of Java from it"},
    {".jvmopts", "sbt takes options of Java from it"},
    {".sbtopts", "sbt takes options from it"},
    {".bazelrc", "Bazel takes programs and options from it"},
    {".bazeliskrc", "Bazelisk takes the address of Bazel from it"},
    {"tools/bazel", "Bazel is what stands there"},
    {"uv.toml", "uv takes registries and options from it"},
    {"poetry.toml", "Poetry takes options from it"},
    {"nuget.config", "NuGet takes registries from it"},
    {"compose.yaml", "Docker Compose takes mounts and commands from it"},
    {"compose.yml", "Docker Compose takes mounts and commands from it"},
    {"compose.override.yaml", "Docker Compose takes mounts and commands from it"},
    {"compose.override.yml", "Docker Compose takes mounts and commands from it"},
    {"docker-compose.yml", "Docker Compose takes mounts and commands from it"},
    {"docker-compose.yaml", "Docker Compose takes mounts and commands from it"},
    {"docker-compose.override.yml", "Docker Compose takes mounts and commands from it"},
    {"docker-compose.override.yaml", "Docker Compose takes mounts and commands from it"},
    {"ansible.cfg", "Ansible takes programs and options from it"},
    {".bundle/config", "Bundler takes programs and options from it"},
    {".env", "shells, editors and agents on this host may take variables from it"},
    {".gitmodules", "git submodule takes addresses from it"},
    {".lfsconfig", "git-lfs takes addresses from it"},
    {".gitreview", "git-review takes addresses from it"},
    {".lintstagedrc", "lint-staged runs what it says, often from a hook of git"},
    {".lintstagedrc.json", "lint-staged runs what it says, often from a hook of git"},
    {".lintstagedrc.yaml", "lint-staged runs what it says, often from a hook of git"},
    {".lintstagedrc.yml", "lint-staged runs what it says, often from a hook of git"},
    {".lintstagedrc.js", "lint-staged runs it, often from a hook of git"},
    {".lintstagedrc.cjs", "lint-staged runs it, often from a hook of git"},
    {".lintstagedrc.mjs", "lint-staged runs it, often from a hook of git"},
    {"lint-staged.config.js", "lint-staged runs it, often from a hook of git"},
    {"lint-staged.config.cjs", "lint-staged runs it, often from a hook of git"},
    {"lint-staged.config.mjs", "lint-staged runs it, often from a hook of git"},
    {"lint-staged.config.ts", "lint-staged runs it, often from a hook of git"},
    {".simple-git-hooks.json", "git on this host runs what it says"},
    {"simple-git-hooks.json", "git on this host runs what it says"},
    {"AGENTS.md", "agents on this host take it for instructions"},
    {"AGENTS.override.md", "agents on this host take it for instructions"},
    {"CLAUDE.md", "agents on this host take it for instructions"},
    {"CLAUDE.local.md", "agents on this host take it for instructions"},
    {"GEMINI.md", "agents on this host take it for instructions"},
    {"QWEN.md", "agents on this host take it for instructions"},
    {".goosehints", "agents on this host take it for instructions"},
    {".rules", "agents on this host take it for instructions"},
    {".roomodes", "agents on this host take it for instructions"},
    {".cursorrules", "agents on this host take it for instructions"},
    {".windsurfrules", "agents on this host take it for instructions"},
    {".github/copilot-instructions.md", "agents on this host take it for instructions"},
};

// Members of package.json that say what runs, beside its scripts.
constexpr Told kPackageKeys[] = {
    {"packageManager", "Corepack starts what it names in place of npm, Yarn or pnpm"},
    {"husky", "git on this host runs what it says"},
    {"gitHooks", "git on this host runs what it says"},
    {"simple-git-hooks", "git on this host runs what it says"},
    {"pre-commit", "git on this host runs what it says"},
    {"pre-push", "git on this host runs what it says"},
    {"lint-staged", "git on this host runs what it says"},
};
constexpr const char* kPackageFile = "package.json";

// What stands for a file. A change time cannot be set, so a file that was written to has another one.
std::string NumbersOf(const struct stat& info) {
  return fmt::format("{} {} {:o} {} {}.{}", info.st_dev, info.st_ino, info.st_mode, info.st_size,
                     info.st_ctim.tv_sec, info.st_ctim.tv_nsec);
}

struct ToldFile {
  std::string links;                // the links on the way, and where each leads
  std::string numbers;              // empty: there is nothing of that name in the project
  std::optional<std::string> text;  // if it can be read

  std::string State() const {
    return links.empty() && numbers.empty() ? std::string()
                                            : links + "\n" + (text ? HashOf(*text) : numbers);
  }
};

ToldFile LookAtTold(const isolation::HostPath& root, const std::string& name) {
  ToldFile file;
  const isolation::TreePath place = isolation::FollowInTree(root, name);
  if (place.end == isolation::TreePath::End::kMissing &&
      std::find(place.links.begin(), place.links.end(), name) == place.links.end()) {
    return file;  // a link to a directory that does not have it
  }
  for (const std::string& link : place.links) {
    const Result<std::string> target = sys::ReadLinkAt(root.fd.get(), link);
    file.links += link + " to " + (target.ok() ? *target : std::string()) + "\n";
  }
  struct stat info{};
  if (place.end != isolation::TreePath::End::kInside ||
      ::fstatat(root.fd.get(), place.path.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 ||
      S_ISDIR(info.st_mode)) {
    return file;
  }
  file.numbers = NumbersOf(info);
  const Result<UniqueFd> found = sys::OpenNoLinks(root.fd.get(), place.path, O_PATH);
  const Result<UniqueFd> readable = found.ok() ? sys::ReopenRegular(found->get(), name, O_RDONLY)
                                               : Result<UniqueFd>(found.error());
  Result<std::string> text = readable.ok() ? sys::ReadFd(readable->get(), kLongestFile)
                                           : Result<std::string>(readable.error());
  if (text.ok()) {
    file.text = std::move(text).value();
  }
  return file;
}

// What is compared of package.json, by key: "" stands for the scripts. A text that cannot be read as JSON is compared
// whole.
std::map<std::string, std::string> StatesOfPackage(const isolation::HostPath& root) {
  const ToldFile file = LookAtTold(root, kPackageFile);
  std::map<std::string, std::string> states;
  const Result<Json> json =
      file.text ? ParseJson(*file.text) : Result<Json>(Refused("policy.file", "it cannot be read"));
  const bool readable = json.ok() && json->is_object();
  const auto state_of = [&](const char* key) {
    const auto member = json->find(key);
    return member == json->end() ? std::string() : HashOf(PrintJson(*member));
  };
  states[""] = readable ? state_of("scripts") : file.State();
  for (const Told& key : kPackageKeys) {
    states[std::string(key.name)] = readable ? state_of(std::string(key.name).c_str()) : "";
  }
  return states;
}

// Adds the files of a directory of git to `hash`; false if there are none. A payload can make any number of them.
bool AddFilesIn(const std::string& path, Sha256& hash) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) {
    return false;
  }
  const Result<UniqueFd> directory = sys::OpenNoLinks(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
  Result<std::vector<sys::DirEntry>> entries =
      directory.ok() ? sys::ListDir(directory->get())
                     : Result<std::vector<sys::DirEntry>>(directory.error());
  if (!entries.ok()) {
    hash.Update(path + " " + NumbersOf(info));
    return true;
  }
  std::sort(entries->begin(), entries->end(),
            [](const sys::DirEntry& a, const sys::DirEntry& b) { return a.name < b.name; });
  for (const sys::DirEntry& entry : *entries) {
    if (::fstatat(directory->get(), entry.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) {
      hash.Update(path + "/" + entry.name + " " + NumbersOf(info) + "\n");
    }
  }
  return !entries->empty();
}

// Empty if there are no files in any of them.
template <size_t N>
std::string FilesIn(const std::string& git_directory, const char* const (&names)[N]) {
  Sha256 hash;
  bool any = false;
  for (const char* const name : names) {
    any = AddFilesIn(git_directory + "/" + name, hash) || any;
  }
  return any ? hash.Finish() : std::string();
}

}  // namespace

ToldChanges::ToldChanges(const isolation::HostPath& root) {
  for (const std::string& directory : isolation::PathDirectoriesIn(root)) {
    on_path_[directory] = isolation::ProgramsIn(directory);
  }
  for (const auto& [key, state] : StatesOfPackage(root)) {
    before_[fmt::format("{} {}", kPackageFile, key)] = state;
  }
  for (const Told& told : kTold) {
    before_[std::string(told.name)] = LookAtTold(root, std::string(told.name)).State();
  }
  std::string at = root.path;
  while (at != "/") {
    at = std::string(isolation::DirName(at));
    for (const Told& told : kTold) {
      const std::string path = (at == "/" ? "" : at) + "/" + std::string(told.name);
      struct stat info{};
      if (::lstat(path.c_str(), &info) == 0 &&
          isolation::FollowInTree(root, path).end != isolation::TreePath::End::kOutside) {
        above_[path] = {LookAtTold(root, path).State(), std::string(told.why)};
      }
    }
  }
}

void ToldChanges::AddGitDirectory(const std::string& path) {
  operations_[path] = FilesIn(path, kOperations);
  remotes_[path] = FilesIn(path, kRemotes);
}

std::vector<std::string> ToldChanges::Find(const isolation::HostPath& root) const {
  std::vector<std::string> notes;
  std::map<std::string, std::string> package = StatesOfPackage(root);
  const auto package_changed = [&](std::string_view key) {
    return package[std::string(key)] != before_.at(fmt::format("{} {}", kPackageFile, key));
  };
  if (package_changed("")) {
    notes.emplace_back("the scripts of package.json have changed: read them before you run them");
  }
  for (const Told& key : kPackageKeys) {
    if (!package[std::string(key.name)].empty() && package_changed(key.name)) {
      notes.push_back(fmt::format("{} in package.json has changed: {}", key.name, key.why));
    }
  }
  for (const Told& told : kTold) {
    const std::string name(told.name);
    const std::string now = LookAtTold(root, name).State();
    if (!now.empty() && now != before_.at(name)) {
      notes.push_back(fmt::format("{} has changed: {}", name, told.why));
    }
  }
  for (const auto& [path, before] : above_) {
    const std::string now = LookAtTold(root, path).State();
    if (!now.empty() && now != before.state) {
      notes.push_back(fmt::format("{} has changed: {}", Printable(path), before.why));
    }
  }
  size_t told = 0;
  const std::set<std::string> outside =
      on_path_.empty() ? std::set<std::string>() : isolation::ProgramsOnPathOutside(root);
  for (const auto& [directory, before] : on_path_) {
    for (const std::string& name : isolation::ProgramsIn(directory)) {
      if (!before.contains(name) && outside.contains(name) && ++told <= kMostTold) {
        notes.push_back(fmt::format(
            "{} is new and in a directory of your PATH: it is started in place of the {} that you "
            "have elsewhere",
            Printable(directory + "/" + name), Printable(name)));
      }
    }
  }
  if (told > kMostTold) {
    notes.push_back(fmt::format("{} such programs are new in all", told));
  }
  told = 0;
  for (const auto& [git, before] : operations_) {
    const std::string now = FilesIn(git, kOperations);
    if (!now.empty() && now != before && ++told <= kMostTold) {
      notes.push_back(fmt::format(
          "a rebase, cherry-pick or revert waits in {} and was begun or changed by the call: "
          "git rebase --continue and its like run what it says; look there first, or --abort it",
          Printable(git)));
    }
  }
  if (told > kMostTold) {
    notes.push_back(fmt::format("such operations wait in {} git directories in all", told));
  }
  told = 0;
  for (const auto& [git, before] : remotes_) {
    const std::string now = FilesIn(git, kRemotes);
    if (!now.empty() && now != before && ++told <= kMostTold) {
      notes.push_back(
          fmt::format("{}/remotes or branches has changed: git fetch and git push take "
                      "addresses from there that the configuration does not have",
                      Printable(git)));
    }
  }
  if (told > kMostTold) {
    notes.push_back(fmt::format("such addresses stand in {} git directories in all", told));
  }
  return notes;
}

}  // namespace coffer::call
