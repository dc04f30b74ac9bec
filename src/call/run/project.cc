// SPDX-License-Identifier: Apache-2.0
#include "call/run/project.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/path_words.h"
#include "base/text.h"
#include "call/run/linked_settings.h"
#include "call/run/set_aside.h"
#include "isolation/fifo_search.h"
#include "isolation/git_programs.h"
#include "isolation/links_into.h"
#include "isolation/path_directories.h"
#include "isolation/runtime/real_path.h"
#include "policy/protected_names.h"

namespace coffer::call {
namespace {

using isolation::HostPath;

constexpr const char* kGitConfig = "/etc/gitconfig.project";
constexpr const char* kGitIgnore = "/etc/gitignore.project";

HostPath Copy(const HostPath& path) {
  HostPath copy;
  copy.fd = UniqueFd(::fcntl(path.fd.get(), F_DUPFD_CLOEXEC, 3));
  copy.path = path.path;
  copy.directory = path.directory;
  copy.dev = path.dev;
  copy.ino = path.ino;
  copy.owner = path.owner;
  copy.group = path.group;
  copy.path_class = path.path_class;
  copy.reason = path.reason;
  return copy;
}

mode_t KindOf(const HostPath& root, const char* name) {
  struct stat info{};
  return ::fstatat(root.fd.get(), name, &info, AT_SYMLINK_NOFOLLOW) == 0 ? info.st_mode & S_IFMT
                                                                         : 0;
}

void AddNames(const isolation::GitNames& names, ProtectedTree::Options& options) {
  options.more.insert(options.more.end(), names.files.begin(), names.files.end());
  options.programs.insert(options.programs.end(), names.to_come.begin(), names.to_come.end());
  options.on_path.insert(options.on_path.end(), names.on_path.begin(), names.on_path.end());
}

// What a configuration makes git run in the project, of the user's own, or of a repository with this worktree. The
// configuration itself may lie in the project too.
void AddPrograms(const HostPath& root, const std::string& config, const std::string& worktree,
                 ProtectedTree::Options& options) {
  AddNames(isolation::NamesInGitConfig(root, config, {root.path, worktree}), options);
  if (config.size() > root.path.size() + 1 && isolation::IsAtOrBelow(config, root.path)) {
    options.more.push_back(config.substr(root.path.size() + 1));
  }
}

// Of repositories around the project, which git on the host finds. Nothing of them is shown inside. Returns the directory
// of the nearest one, or "".
std::string AddProgramsAbove(const HostPath& root, ProtectedTree::Options& options) {
  std::string nearest;
  std::string at = root.path;
  while (at != "/") {
    at = std::string(isolation::DirName(at));
    const std::vector<std::string> configs = isolation::GitConfigsAt(at);
    if (nearest.empty() && !configs.empty()) {
      nearest = at;
    }
    for (const std::string& config : configs) {
      AddPrograms(root, config, at, options);
    }
  }
  return nearest;
}

// What programs of the host reach in the tree from outside: over links from the home directory, from directories above
// it, and from `others`. What cannot be protected is said in `notes`.
void AddLinks(const HostPath& root, const std::vector<std::string>& others,
              ProtectedTree::Options& options, std::vector<std::string>& notes) {
  const std::vector<std::string> settings = LinkedSettings(root);
  options.more.insert(options.more.end(), settings.begin(), settings.end());
  isolation::LinksInto links(root);
  links.AddAbove();
  for (const std::string& other : others) {
    links.Add(other);
  }
  options.more.insert(options.more.end(), links.links().begin(), links.links().end());
  for (const std::string& config : links.configs()) {
    AddPrograms(root, config, std::string(isolation::DirName(config)), options);
  }
  if (!links.to_root().empty()) {
    notes.push_back(
        fmt::format("{} leads to this project as a whole: what the call leaves here is "
                    "read there, and nothing of it is protected for that",
                    Printable(*links.to_root().begin())));
  }
  if (!links.cut().empty()) {
    notes.push_back(fmt::format("{} holds too much to be looked through for links into the project",
                                Printable(links.cut())));
  }
}

// A directory of settings has nothing but what the host runs. What lies deeper in one may be a project: agents make
// worktrees there. A git directory has its own protection.
Status CheckIsNoSetting(const HostPath& root) {
  const std::string_view above = isolation::DirName(root.path);
  const policy::ProtectedName* const known =
      policy::FindProtectedName(isolation::BaseName(root.path), isolation::BaseName(above));
  if (known == nullptr || known->name == ".git") {
    return {};
  }
  return Refused(
      "policy.project.link",
      fmt::format("{} is no project: {} on this host runs what lies there",
                  PathInWords(Printable(root.path)), known->run_by),
      fmt::format("name the directory around it; or --rw {}, if a call is to write there",
                  PathInWords(Printable(root.path))));
}

}  // namespace

Status Project::OpenGitDirectory(PlantedRule rule, const isolation::GitPointer& pointer,
                                 std::vector<isolation::OpenedMount>& mounts) {
  const std::string& common = pointer.common;
  if (isolation::IsAtOrBelow(common, root_.path)) {
    return {};  // shown already
  }
  if (isolation::IsAtOrBelow(root_.path, common)) {
    notes_.push_back("the project lies in its own git directory, which is not shown");
    return {};
  }
  isolation::OpenedMount mount;
  TRY_ASSIGN(mount.path, isolation::OpenHostPath(common, policy::Access::kWrite));
  mount.at = mount.path.path;
  mount.access = policy::Access::kWrite;
  mount.project = true;
  TRY_ASSIGN(mount.fifos, isolation::FindFifos(mount.path));
  HostPath root = Copy(mount.path);
  mounts.push_back(std::move(mount));
  ProtectedTree::Options options;
  options.rule = rule;
  if (pointer.worktree()) {
    // Of all worktrees of the repository only this one's record can change, and not where it leads.
    const std::string record = pointer.directory.substr(common.size() + 1);
    options.read_only = {"worktrees"};
    options.writable = {record};
    options.more = {record + "/commondir", record + "/gitdir", record + "/config.worktree"};
  }
  AddProgramsAbove(root, options);
  AddLinks(root, trees_.front().protected_names(), options, notes_);
  TRY_ASSIGN(ProtectedTree tree, ProtectedTree::Open(std::move(root), options, mounts));
  trees_.push_back(std::move(tree));
  outside_.push_back(common);
  return {};
}

Result<Project> Project::Open(PlantedRule rule, const std::vector<std::string>& read_only,
                              std::vector<isolation::OpenedMount>& mounts) {
  Project project;
  project.rule_ = rule;
  mounts.back().project = true;
  project.root_ = Copy(mounts.back().path);
  const HostPath& root = project.root_;
  TRY(CheckIsNoSetting(root));
  ProtectedTree::Options options;
  options.rule = rule;
  options.hold_names = true;
  options.more = read_only;
  for (const std::string& config : isolation::GlobalGitConfigs()) {
    AddPrograms(root, config, root.path, options);
  }
  AddNames(isolation::NamesInGitEnvironment(root, {root.path}), options);
  AddNames(isolation::NamesOnPath(root), options);
  const std::string above = AddProgramsAbove(root, options);
  AddLinks(root, {}, options, project.notes_);
  for (const std::string& directory : isolation::PathDirectoriesIn(root, "LD_LIBRARY_PATH")) {
    project.notes_.push_back(fmt::format(
        "LD_LIBRARY_PATH names {} in this project: every program that you start on this "
        "host loads the libraries that a call puts there",
        Printable(directory)));
  }
  const mode_t git = KindOf(root, ".git");
  if (git == 0) {
    project.repository_above_ = above;
  }
  std::optional<isolation::GitPointer> pointer;
  if (git == S_IFREG) {
    Result<isolation::GitPointer> followed = isolation::FollowGitFile(root);
    if (followed.ok()) {
      pointer = std::move(followed).value();
    } else {
      project.notes_.push_back("the project's .git file is not followed: " +
                               followed.error().message);
    }
  }
  project.git_directory_ = pointer          ? pointer->directory
                           : git == S_IFDIR ? root.path + "/.git"
                                            : std::string();
  project.told_ = ToldChanges(root);
  TRY_ASSIGN(ProtectedTree tree, ProtectedTree::Open(Copy(root), options, mounts));
  project.trees_.push_back(std::move(tree));
  if (pointer) {
    TRY(project.OpenGitDirectory(rule, *pointer, mounts));
  } else if (git == S_IFLNK) {
    project.notes_.emplace_back("the project's .git is a link, which is not followed");
  }
  for (const ProtectedTree& one : project.trees_) {
    for (const std::string& directory : one.git_directories()) {
      project.told_.AddGitDirectory(directory);
    }
  }
  return project;
}

std::vector<isolation::PrivateFile> Project::GitFiles() const {
  const std::vector<std::string>& held = trees_.front().held_names();
  // A pattern to git, and a quoted word.
  const bool plain = git_directory_.find_first_of("*?[]\\\"\n") == std::string::npos;
  if (git_directory_.empty() || held.empty() || !plain) {
    return {};
  }
  std::string ignored = "# made by coffer run --project: empty directories that keep names free\n";
  for (const std::string& name : held) {
    ignored += fmt::format("/{}/\n", name);
  }
  return {
      {"/etc/gitconfig",
       fmt::format("[includeIf \"gitdir:{}\"]\n\tpath = {}\n", git_directory_, kGitConfig), 0444},
      {kGitConfig, fmt::format("[core]\n\texcludesFile = {}\n", kGitIgnore), 0444},
      {kGitIgnore, std::move(ignored), 0444}};
}

bool Project::HoldsGit() const {
  const std::vector<std::string>& held = trees_.front().held_names();
  return std::find(held.begin(), held.end(), ".git") != held.end();
}

void Project::AddCache(const HostPath& cache) { caches_.push_back(Copy(cache)); }

// No tool keeps a repository in its cache, so whatever git would take for one was planted.
Status Project::SettleCache(const HostPath& cache, End& end) const {
  const OpenedToOwner opened(cache.fd.get());
  const isolation::ProjectScan nothing;
  TRY_ASSIGN(const isolation::ProjectScan found, isolation::ScanProject(cache, &nothing));
  std::set<std::string> planted;  // from the outside in
  for (const isolation::FoundName& git : found.git_directories) {
    planted.insert(git.above ? git.path : git.path.empty() ? "HEAD" : git.path + "/HEAD");
  }
  for (const isolation::FoundName& name : found.names) {
    if (name.run_by == "git" && !S_ISDIR(name.mode)) {
      planted.insert(name.path);
    }
  }
  SetAside aside(cache);
  std::string moved;
  for (const std::string& path : planted) {
    if (!moved.empty() && isolation::IsAtOrBelow(path, moved)) {
      continue;
    }
    moved = path;
    Planted entry{cache.path + "/" + path, "git", ""};
    const Result<std::string> place =
        rule_ == PlantedRule::kKeep ? Result<std::string>(std::string()) : aside.Move(path);
    if (place.ok() && !place->empty()) {
      entry.set_aside = cache.path + "/" + *place;
    }
    end.planted.push_back(std::move(entry));
  }
  return {};
}

void Project::TellLocks(End& end) const {
  constexpr size_t kMostTold = 5;
  size_t found = 0;
  for (size_t i = 0; i < trees_.size(); ++i) {
    for (const std::string& path : trees_[i].left_locks()) {
      if (++found <= kMostTold) {
        end.notes.push_back(
            fmt::format("{} was left in a git directory: git on this host refuses to write there "
                        "until it is removed; remove it if no git is at work",
                        Printable(i == 0 ? path : outside_[i - 1] + "/" + path)));
      }
    }
  }
  if (found > kMostTold) {
    end.notes.push_back(fmt::format("{} such locks were left in all", found));
  }
}

Project::End Project::Settle() {
  End end;
  const OpenedToOwner opened(root_.fd.get());
  for (size_t i = 0; i < trees_.size(); ++i) {
    Result<std::vector<Planted>> planted = trees_[i].Settle();
    if (!planted.ok()) {
      end.failed = std::move(planted.error());
      continue;
    }
    for (Planted& entry : *planted) {
      if (i > 0) {
        entry.path = outside_[i - 1] + "/" + entry.path;
      }
      if (!entry.set_aside.empty()) {
        entry.set_aside = (i == 0 ? root_.path : outside_[i - 1]) + "/" + entry.set_aside;
      }
      end.planted.push_back(std::move(entry));
    }
  }
  for (const HostPath& cache : caches_) {
    if (Status settled = SettleCache(cache, end); !settled.ok()) {
      end.failed = std::move(settled.error());
    }
  }
  end.notes = told_.Find(root_);
  TellLocks(end);
  return end;
}

}  // namespace coffer::call
