// SPDX-License-Identifier: Apache-2.0
//
// Collects a runtime set: programs with their loaders and libraries, trees, single files, and the names they go by.
//
// Keeps the promises of runtime_set.h: real paths, no duplicates, nothing in a tree twice, links of one hop. It also
// remembers what the answer depends on (the watch list), so that a cached answer can be checked with a few stats.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "isolation/runtime/libraries.h"
#include "isolation/runtime/program.h"
#include "isolation/runtime/real_path.h"
#include "isolation/runtime/resolution_cache.h"
#include "isolation/runtime/runtime_set.h"

namespace coffer::isolation {

class SetBuilder {
 public:
  SetBuilder() : libraries_(paths_) {}

  RealPaths& paths() { return paths_; }

  // What a file names may lie beside this program: the caller named it.
  void AddOwnTree(const RealPaths::Place& place);

  // The program at its real path, its name if that is a link, its interpreter and libraries. A script: the file alone.
  Status AddProgram(const Program& program);

  // The same for the program at `path`; false if there is none or it may not be brought in (setuid, wrong machine).
  bool AddOptionalProgram(const std::string& path);

  // A tree or a data file, if it is there: true if so.
  enum class Exec : uint8_t { kNo, kYes };
  bool AddTree(const std::string& path, Exec exec = Exec::kNo);
  bool AddFile(const std::string& path);
  // Either of them, left out later if it may not be shown.
  void AddOptional(const std::string& path);

  // A further name for something in the set, if the host has it too and it leads to the same file.
  void AddName(const std::string& path);
  void AddLink(std::string name, std::string target) {
    links_.emplace_back(std::move(name), std::move(target));
  }

  // What the shared objects in `directory`, and `depth` levels below it, need; the objects themselves are in a tree.
  // Names in `skip` and Python's own bookkeeping are left out. Libraries that are missing are missing on the host too.
  void AddModules(const std::string& directory, int depth,
                  const std::vector<std::string_view>& skip = {});

  // A library that is loaded by name at run time, if the host has it.
  void AddLibrary(const std::string& soname);

  // The answer depends on this file or directory; call it before looking at it.
  void Watch(const std::string& path) { witnesses_.push_back(Observe(path)); }
  const std::vector<Witness>& witnesses() const { return witnesses_; }

  // kRefused if the files led to more lookups than any program needs (RealPaths::exhausted).
  Status CheckBudget() const;

  // kAll keeps links that lead out of the set: it will be merged with another one, which has their targets.
  enum class Links : uint8_t { kInside, kAll };
  RuntimeSet Finish(Links links = Links::kInside);

 private:
  RealPaths paths_;
  LibraryFinder libraries_;
  std::vector<RuntimeFile> files_;
  std::vector<std::pair<std::string, std::string>> links_;
  std::vector<std::string> interpreters_;
  std::vector<std::string> own_trees_;
  std::vector<Witness> witnesses_;
};

}  // namespace coffer::isolation
