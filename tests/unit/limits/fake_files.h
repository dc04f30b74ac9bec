// SPDX-License-Identifier: Apache-2.0
//
// A host made of strings: files with contents, and the set of paths that may be written.
#pragma once

#include <errno.h>

#include <map>
#include <optional>
#include <set>
#include <string>

#include "limits/cgroup/files.h"

namespace coffer::limits {

class FakeFiles : public CgroupFiles {
 public:
  std::optional<std::string> Read(const std::string& path) const override {
    const auto found = texts.find(path);
    return found == texts.end() ? std::nullopt : std::optional(found->second);
  }
  long Writable(const std::string& path) const override {
    if (read_only) {
      return -EROFS;
    }
    return writable.contains(path) ? 0 : -EACCES;
  }
  uint64_t Namespace(std::string_view name) const override {
    return name == "pid" ? 4026531836 : (in_container ? 4026532000 : 4026531835);
  }

  // A v2 cgroup with its four files. `procs` is what cgroup.procs lists.
  void AddV2(const std::string& dir, const std::string& controllers, const std::string& subtree,
             const std::string& procs = "") {
    texts[dir + "/cgroup.controllers"] = controllers;
    texts[dir + "/cgroup.subtree_control"] = subtree;
    texts[dir + "/cgroup.procs"] = procs;
    texts[dir + "/cgroup.type"] = "domain\n";
  }
  void MakeRealRoot(const std::string& dir) { texts.erase(dir + "/cgroup.type"); }
  void Allow(const std::string& dir) {
    writable.insert({dir, dir + "/cgroup.procs", dir + "/cgroup.subtree_control"});
  }

  std::map<std::string, std::string> texts;
  std::set<std::string> writable;
  bool read_only = false;
  bool in_container = false;  // a cgroup namespace of our own
};

}  // namespace coffer::limits
