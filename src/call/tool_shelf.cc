// SPDX-License-Identifier: Apache-2.0
#include "call/tool_shelf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "base/regular_file.h"
#include "base/sys.h"
#include "call/operator_path.h"
#include "call/tool_on_host.h"
#include "isolation/host_path.h"

namespace coffer::call {
namespace {

struct ShippedTool {
  std::string_view file;
  std::string_view text;
};

constexpr ShippedTool kShipped[] = {
#include "call/shipped_tools.inc"
};

constexpr size_t kMaxManifest = 1 << 20;
constexpr std::string_view kSuffix = ".toml";

std::string StemOf(std::string_view file) {
  const size_t slash = file.rfind('/');
  std::string_view name = slash == std::string_view::npos ? file : file.substr(slash + 1);
  if (name.ends_with(kSuffix)) {
    name.remove_suffix(kSuffix.size());
  }
  return std::string(name);
}

// The manifests of a directory, sorted, so that the same files always give the same shelf.
Result<std::vector<std::string>> ManifestsIn(const std::string& directory,
                                             std::optional<uid_t> operator_uid) {
  TRY_ASSIGN(const UniqueFd dir, operator_uid ? OpenOperatorDirectory(directory, *operator_uid)
                                              : sys::Open(directory, O_RDONLY | O_DIRECTORY));
  TRY_ASSIGN(const std::vector<sys::DirEntry> entries, sys::ListDir(dir.get()));
  std::vector<std::string> names;
  for (const sys::DirEntry& entry : entries) {
    if (entry.name.ends_with(kSuffix) && entry.name.front() != '.') {
      names.push_back(entry.name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

// What the host says about a mount, as the warden will say it again.
Status CheckMount(const policy::Mount& mount) {
  TRY_ASSIGN(const isolation::HostPath opened,
             isolation::OpenHostPath(mount.host, mount.access, isolation::BreadthOf(mount)));
  return isolation::CheckToolMayWrite(opened, mount);
}

class ShelfBuilder {
 public:
  using Entries = std::map<std::string, ShelfEntry, std::less<>>;
  explicit ShelfBuilder(const Entries& before) : before_(before) {}

  void Add(const std::string& file, Result<std::string> text, bool shipped) {
    policy::LoadedTool loaded;
    if (text.ok()) {
      loaded = LoadToolHere(*text, file);
    } else {
      loaded.mistakes.push_back({{}, text.error().message, ""});
    }
    ShelfEntry entry;
    entry.file = file;
    entry.shipped = shipped;
    entry.mistakes = std::move(loaded.mistakes);
    if (loaded.tool) {
      entry.tool = std::make_shared<const policy::Tool>(std::move(*loaded.tool));
      entry.name = entry.tool->manifest.tool.name;
    } else if (const ShelfEntry* last = LastGood(file)) {
      entry.tool = last->tool;
      entry.name = last->name;
      entry.state = ToolState::kStale;
    } else {
      entry.name = StemOf(file);
      entry.state = ToolState::kBroken;
    }
    Place(std::move(entry));
  }

  Entries Take() { return std::move(entries_); }

 private:
  const ShelfEntry* LastGood(const std::string& file) const {
    for (const auto& [name, entry] : before_) {
      if (entry.file == file && entry.tool != nullptr) {
        return &entry;
      }
    }
    return nullptr;
  }

  void Place(ShelfEntry entry) {
    const auto there = entries_.find(entry.name);
    if (there == entries_.end() || there->second.shipped) {
      entries_[entry.name] = std::move(entry);
      return;
    }
    // Two files of the operator for one tool: the first stays, and the second says so under its own name.
    const std::string other = there->second.file;
    entry.mistakes.push_back(
        {{}, fmt::format("the tool {} is already declared in {}", entry.name, other), ""});
    entry.name = fmt::format("{} ({})", entry.name, StemOf(entry.file));
    entry.tool = nullptr;
    entry.state = ToolState::kBroken;
    entries_[entry.name] = std::move(entry);
  }

  const Entries& before_;
  Entries entries_;
};

}  // namespace

const std::set<policy::Surface>& AvailableSurfaces() {
  static const std::set<policy::Surface> kAvailable = {policy::Surface::kNetwork};
  return kAvailable;
}

namespace {

enum class Asked : uint8_t { kMounts, kMountsAndPrograms };

policy::LoadedTool LoadOnHost(std::string_view text, std::string_view file, Asked asked) {
  policy::LoadedTool loaded = policy::LoadTool(text, file, AvailableSurfaces());
  if (!loaded.tool && !loaded.draft) {
    return loaded;
  }
  const std::vector<policy::Mistake> known = loaded.mistakes;
  for (const policy::FileMount& mount :
       loaded.tool ? loaded.tool->manifest.mounts : loaded.draft->mounts) {
    if (mount.host.empty() || policy::IsWrongAlready(known, mount.position)) {
      continue;
    }
    const auto access =
        mount.mode == policy::MountMode::kRead ? policy::Access::kRead : policy::Access::kWrite;
    if (const Status checked = CheckMount({mount.host, mount.at, access, mount.dangerous});
        !checked.ok()) {
      loaded.mistakes.push_back({mount.position, checked.error().message, checked.error().hint});
    }
  }
  if (asked == Asked::kMountsAndPrograms) {
    for (policy::Mistake& mistake :
         CheckToolOnHost(loaded.tool ? loaded.tool->manifest : *loaded.draft)) {
      if (!policy::IsWrongAlready(known, mistake.at)) {
        loaded.mistakes.push_back(std::move(mistake));
      }
    }
  }
  if (!loaded.mistakes.empty()) {
    std::sort(loaded.mistakes.begin(), loaded.mistakes.end(),
              [](const policy::Mistake& a, const policy::Mistake& b) { return a.at < b.at; });
    loaded.tool.reset();
  }
  loaded.draft.reset();
  return loaded;
}

}  // namespace

policy::LoadedTool LoadToolHere(std::string_view text, std::string_view file) {
  return LoadOnHost(text, file, Asked::kMounts);
}

std::vector<policy::Mistake> CheckToolHere(std::string_view text, std::string_view file) {
  return LoadOnHost(text, file, Asked::kMountsAndPrograms).mistakes;
}

ToolShelf::ToolShelf(std::vector<std::string> directories, std::string may_be_missing,
                     std::optional<uid_t> operator_uid)
    : directories_(std::move(directories)),
      may_be_missing_(std::move(may_be_missing)),
      operator_uid_(operator_uid) {}

// All manifests, in the order in which they count.
Result<std::vector<std::string>> ToolShelf::Files() const {
  std::vector<std::string> files;
  const auto add = [&](const std::string& directory, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      files.push_back(directory + "/" + name);
    }
  };
  for (const std::string& directory : directories_) {
    TRY_ASSIGN(const std::vector<std::string> names, ManifestsIn(directory, operator_uid_));
    add(directory, names);
  }
  if (!may_be_missing_.empty()) {
    Result<std::vector<std::string>> names = ManifestsIn(may_be_missing_, operator_uid_);
    if (!names.ok() && names.error().sys_errno != ENOENT) {
      return std::move(names.error());
    }
    add(may_be_missing_, names.ok() ? *names : std::vector<std::string>());
  }
  return files;
}

Status ToolShelf::Reload() {
  const std::shared_ptr<const Entries> before = Now();
  ShelfBuilder builder(*before);
  for (const ShippedTool& shipped : kShipped) {
    builder.Add(std::string(shipped.file), std::string(shipped.text), true);
  }
  TRY_ASSIGN(const std::vector<std::string> files, Files());
  for (const std::string& path : files) {
    builder.Add(path,
                operator_uid_ ? ReadOperatorFile(path, *operator_uid_, kMaxManifest)
                              : sys::ReadRegular(path, kMaxManifest),
                false);
  }
  auto made = std::make_shared<const Entries>(builder.Take());
  const std::lock_guard lock(mutex_);
  entries_ = std::move(made);
  return {};
}

void ToolShelf::Replace(const std::vector<std::shared_ptr<const policy::Tool>>& tools) {
  Entries entries;
  for (const std::shared_ptr<const policy::Tool>& tool : tools) {
    ShelfEntry entry;
    entry.name = tool->manifest.tool.name;
    entry.tool = tool;
    entries[entry.name] = std::move(entry);
  }
  auto made = std::make_shared<const Entries>(std::move(entries));
  const std::lock_guard lock(mutex_);
  entries_ = std::move(made);
}

Result<std::string> ToolShelf::Signature() const {
  TRY_ASSIGN(std::vector<std::string> looked_at, Files());
  // The directories too: a file that came and went between two looks has changed their times.
  looked_at.insert(looked_at.end(), directories_.begin(), directories_.end());
  looked_at.push_back(may_be_missing_);
  std::string signature;
  for (const std::string& path : looked_at) {
    struct stat info{};
    if (::stat(path.c_str(), &info) == 0) {
      signature += fmt::format("\n{}|{}|{}|{}.{}|{}.{}", path, info.st_ino, info.st_size,
                               info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_ctim.tv_sec,
                               info.st_ctim.tv_nsec);
    }
  }
  return signature;
}

std::shared_ptr<const ToolShelf::Entries> ToolShelf::Now() const {
  const std::lock_guard lock(mutex_);
  return entries_;
}

std::shared_ptr<const policy::Tool> ToolShelf::Find(std::string_view name) const {
  const std::shared_ptr<const Entries> entries = Now();
  const auto found = entries->find(name);
  return found == entries->end() ? nullptr : found->second.tool;
}

std::vector<ShelfEntry> ToolShelf::List() const {
  std::vector<ShelfEntry> list;
  const std::shared_ptr<const Entries> entries = Now();
  for (const auto& [name, entry] : *entries) {
    list.push_back(entry);
  }
  return list;
}

}  // namespace coffer::call
