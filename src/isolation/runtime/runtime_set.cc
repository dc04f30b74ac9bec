// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/runtime_set.h"

#include <algorithm>
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
    const auto entry = std::lower_bound(files.begin(), files.end(), at, [](const RuntimeFile& file, std::string_view name) {
      return std::string_view(file.inside) < name;
    });
    if (entry != files.end() && entry->inside == at && (entry->directory || at.size() == path.size())) {
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
  const auto next = std::lower_bound(files.begin(), files.end(), prefix,
                                     [](const RuntimeFile& file, const std::string& name) { return file.inside < name; });
  return next != files.end() && next->inside.starts_with(prefix);
}

std::string TargetOf(const std::pair<std::string, std::string>& link) {
  return Normalize(std::string(DirName(link.first)) + "/" + link.second);
}

}  // namespace

RuntimeSet Merge(RuntimeSet first, RuntimeSet second) {
  std::vector<RuntimeFile>& files = first.files;
  files.insert(files.end(), std::make_move_iterator(second.files.begin()), std::make_move_iterator(second.files.end()));
  // Of two with the same name the earlier stays, but a program stays executable.
  std::stable_sort(files.begin(), files.end(),
                   [](const RuntimeFile& a, const RuntimeFile& b) { return a.inside < b.inside; });
  std::vector<RuntimeFile> kept;
  kept.reserve(files.size());
  for (RuntimeFile& file : files) {
    if (!kept.empty() && kept.back().inside == file.inside) {
      kept.back().executable = kept.back().executable || file.executable;
      continue;
    }
    const RuntimeFile* const tree = FindEntry(kept, file.inside);
    // Something else than what the tree has at that place (a library's other name) is in the tree by its own name.
    if (tree != nullptr && IsBelow(file.inside, tree->inside)) {
      continue;
    }
    kept.push_back(std::move(file));
  }
  files = std::move(kept);

  auto& links = first.links;
  links.insert(links.end(), std::make_move_iterator(second.links.begin()), std::make_move_iterator(second.links.end()));
  std::stable_sort(links.begin(), links.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::pair<std::string, std::string>> kept_links;
  kept_links.reserve(links.size());
  for (auto& link : links) {
    const bool again = !kept_links.empty() && kept_links.back().first == link.first;
    if (!again && FindEntry(files, link.first) == nullptr && HasAnythingAt(files, TargetOf(link))) {
      kept_links.push_back(std::move(link));
    }
  }
  links = std::move(kept_links);
  return first;
}

std::string FindInside(const RuntimeSet& set, const std::string& path) {
  std::string at = Normalize(path);
  for (int hops = 0; hops < 40; ++hops) {
    if (const RuntimeFile* const entry = FindEntry(set.files, at); entry != nullptr) {
      if (!entry->directory || at == entry->inside) {
        return at;
      }
      RealPaths paths;
      const Result<RealPaths::Place> place = paths.Find(entry->host + at.substr(entry->inside.size()));
      if (!place.ok()) {
        return {};
      }
      const bool stays = std::any_of(set.files.begin(), set.files.end(), [&](const RuntimeFile& file) {
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
    if (!file.directory && !file.executable && name.starts_with("lib") && name.find(".so") != std::string_view::npos) {
      libraries.emplace_back(name, file.inside);
    }
  }
  return BuildLoaderCache(std::move(libraries));
}

}  // namespace coffer::isolation
