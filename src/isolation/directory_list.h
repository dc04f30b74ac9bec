// SPDX-License-Identifier: Apache-2.0
//
// Directories that must exist, every parent before its children.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace coffer::isolation {

class DirectoryList {
 public:
  void AddParentsOf(const std::string& path) {
    for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
      Add(path.substr(0, at));
    }
  }
  void Add(const std::string& path) { dirs_.insert(path); }
  // A set is sorted, and a parent sorts before what is below it.
  std::vector<std::string> list() const { return {dirs_.begin(), dirs_.end()}; }

 private:
  std::set<std::string> dirs_;
};

}  // namespace coffer::isolation
