// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/runtime_set.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "isolation/runtime/loader_cache.h"
#include "isolation/runtime/real_path.h"
#include "isolation/runtime/runtime.h"

namespace coffer::isolation {

namespace {

bool IsBelow(std::string_view path, std::string_view directory) {
  return path.size() > directory.size() && path.starts_with(directory) &&
         (directory == "/" || path[directory.size()] == '/');
}

// The entry of a sorted list that is `path` or a tree around it.
const RuntimeFile* FindEntry(const std::vector<RuntimeFile>& files, const std::string& path) {
  for (std::string_view at = path;; at = DirName(at)) {
    const auto entry = std::lower_bound(files.begin(), files.end(), at,
                                        [](const RuntimeFile& file, std::string_view name) {
                                          return std::string_view(file.inside) < name;
                                        });
    if (entry != files.end() && entry->inside == at &&
        (entry->directory || at.size() == path.size())) {
      return &*entry;
    }
    if (at.size() <= 1) {
      return nullptr;
    }
  }
}

bool HasAnythingAt(const std::vector<RuntimeFile>& files, const std::string& path) {
  if (FindEntry(files, path) != nullptr) {
    return true;
  }
  const std::string prefix = path + "/";
  const auto next = std::lower_bound(
      files.begin(), files.end(), prefix,
      [](const RuntimeFile& file, const std::string& name) { return file.inside < name; });
  return next != files.end() && next->inside.starts_with(prefix);
}

std::string TargetOf(const std::pair<std::string, std::string>& link) {
  return Normalize(std::string(DirName(link.first)) + "/" + link.second);
}

}  // namespace

RuntimeSet Merge(RuntimeSet first, RuntimeSet second) {
  std::map<std::string, RuntimeFile> files;
  std::map<std::string, std::string> links;
  for (RuntimeSet* const set : {&first, &second}) {
    for (RuntimeFile& file : set->files) {
      // Of two with the same name the earlier stays, but a program stays executable.
      const bool executable = file.executable;
      const bool named = file.named_by_caller;
      const auto kept = files.try_emplace(file.inside, std::move(file)).first;
      kept->second.executable = kept->second.executable || executable;
      kept->second.named_by_caller = kept->second.named_by_caller || named;
    }
    for (auto& [name, target] : set->links) {
      links.try_emplace(std::move(name), std::move(target));
    }
  }
  RuntimeSet merged;
  merged.own_trees = std::move(first.own_trees);
  merged.own_trees.insert(merged.own_trees.end(), second.own_trees.begin(), second.own_trees.end());
  merged.files.reserve(files.size());
  for (auto& [name, file] : files) {
    if (FindEntry(merged.files, name) == nullptr) {  // not inside a tree
      merged.files.push_back(std::move(file));
    }
  }
  for (auto& [name, target] : links) {
    std::pair<std::string, std::string> link(name, std::move(target));
    if (FindEntry(merged.files, name) == nullptr && HasAnythingAt(merged.files, TargetOf(link))) {
      merged.links.push_back(std::move(link));
    }
  }
  return merged;
}

std::string FindInside(const RuntimeSet& set, const std::string& path) {
  std::string at = Normalize(path);
  for (int hops = 0; hops < 40; ++hops) {
    if (const RuntimeFile* const entry = FindEntry(set.files, at); entry != nullptr) {
      if (!entry->directory || at == entry->inside) {
        return at;
      }
      RealPaths paths;
      const Result<RealPaths::Place> place =
          paths.Find(entry->host + at.substr(entry->inside.size()));
      if (!place.ok()) {
        return {};
      }
      const bool stays =
          std::any_of(set.files.begin(), set.files.end(), [&](const RuntimeFile& file) {
            return file.host == place->real || (file.directory && IsBelow(place->real, file.host));
          });
      return stays ? at : std::string();
    }
    const auto link = std::find_if(set.links.begin(), set.links.end(), [&](const auto& candidate) {
      return candidate.first == at || IsBelow(at, candidate.first);
    });
    if (link == set.links.end()) {
      return {};
    }
    at = Normalize(TargetOf(*link) + at.substr(link->first.size()));
  }
  return {};
}

std::string MakeLoaderCache(const RuntimeSet& set) {
  std::vector<std::pair<std::string, std::string>> libraries;
  for (const RuntimeFile& file : set.files) {
    const std::string_view name = BaseName(file.inside);
    if (!file.directory && !file.executable && name.starts_with("lib") &&
        name.find(".so") != std::string_view::npos) {
      libraries.emplace_back(name, file.inside);
    }
  }
  if (FindEntry(set.files, "/usr/lib") != nullptr) {
    LoaderCache host;
    host.Open("/etc/ld.so.cache");
    for (auto& library : host.All()) {
      libraries.push_back(std::move(library));  // after those of the set, which are found first
    }
  }
  return BuildLoaderCache(std::move(libraries));
}

}  // namespace coffer::isolation
