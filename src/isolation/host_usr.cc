// SPDX-License-Identifier: Apache-2.0
#include "isolation/host_usr.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>

#include "base/sys.h"

namespace coffer::isolation {
namespace {

constexpr const char* kUsr = "/usr/";
constexpr const char* kConfiguration = "local/etc";

using Entries = std::vector<sys::DirEntry>;

std::optional<Entries> List(const std::string& part) {
  const Result<UniqueFd> fd = sys::Open(kUsr + part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!fd.ok()) {
    return std::nullopt;
  }
  Result<Entries> entries = sys::ListDir(fd->get());
  return entries.ok() ? std::optional<Entries>(std::move(entries).value()) : std::nullopt;
}

// How far down to look, and whether at plain files: a directory of installed programs holds too many.
enum class Depth : uint8_t { kTop, kLocal, kBelowLocal };

class HiddenSearch {
 public:
  explicit HiddenSearch(SystemPaths& system) : system_(system) {}

  void Look(const std::string& part, Depth depth) {
    const std::optional<Entries> entries = List(part);
    if (!entries) {
      found_.directories.push_back(part.substr(0, part.size() - 1));
      return;
    }
    for (const sys::DirEntry& entry : *entries) {
      const bool plain = entry.type == DT_LNK || entry.type == DT_REG;
      if (entry.type != DT_LNK && !(plain && depth == Depth::kBelowLocal)) {
        LookAt(part + entry.name, depth);
      }
    }
  }

  HiddenUsr Take() { return std::move(found_); }

 private:
  void LookAt(const std::string& part, Depth depth) {
    struct stat info{};
    const std::string path = kUsr + part;
    if (::lstat(path.c_str(), &info) != 0 || S_ISLNK(info.st_mode)) {
      return;
    }
    const bool directory = S_ISDIR(info.st_mode);
    const bool fit = (directory || S_ISREG(info.st_mode)) && system_.IsPublic(path, info);
    if (!fit || (part == kConfiguration && !IsEmpty(part))) {
      (directory ? found_.directories : found_.files).push_back(part);
    } else if (directory && depth == Depth::kTop && part == "local") {
      Look(part + "/", Depth::kLocal);
    } else if (directory && depth == Depth::kLocal && !HoldsPrograms(part)) {
      Look(part + "/", Depth::kBelowLocal);
    }
  }

  // Installed files and nothing else; what is not public among them has its own mode.
  static bool HoldsPrograms(const std::string& part) {
    return part == "local/bin" || part == "local/sbin" || part == "local/include" ||
           part == "local/games";
  }

  static bool IsEmpty(const std::string& part) {
    const std::optional<Entries> entries = List(part);
    return entries && entries->empty();
  }

  SystemPaths& system_;
  HiddenUsr found_;
};

void AddShown(const std::string& part, const std::vector<std::string>& hidden,
              std::vector<std::string>& shown) {
  const std::optional<Entries> entries = List(part);
  if (!entries) {
    return;
  }
  for (const sys::DirEntry& entry : *entries) {
    const std::string name = part + entry.name;
    if (std::find(hidden.begin(), hidden.end(), name) != hidden.end()) {
      continue;
    }
    const bool holds_hidden =
        std::any_of(hidden.begin(), hidden.end(),
                    [&](const std::string& other) { return IsAtOrBelow(other, name); });
    if (holds_hidden) {
      AddShown(name + "/", hidden, shown);
    } else if (entry.type != DT_LNK) {
      shown.push_back(kUsr + name);
    }
  }
}

}  // namespace

HiddenUsr FindHiddenUsr(SystemPaths& system) {
  HiddenSearch search(system);
  search.Look("", Depth::kTop);
  return search.Take();
}

std::vector<std::string> ShownPartsOfUsr(const HiddenUsr& hidden) {
  std::vector<std::string> all = hidden.directories;
  all.insert(all.end(), hidden.files.begin(), hidden.files.end());
  std::vector<std::string> shown;
  AddShown("", all, shown);
  return shown;
}

}  // namespace coffer::isolation
