// SPDX-License-Identifier: Apache-2.0
//
// The processes of a tree, found through /proc.
//
// The tree is everything below init: a pid namespace's pid 1, or a child subreaper, so orphans stay in it. It is
// walked through /proc/PID/task/TID/children (CONFIG_PROC_CHILDREN), or found by scanning /proc where that is missing.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace coffer::limits {

// One process, as its /proc/PID/stat describes it.
struct TreeProcess {
  pid_t pid = 0;
  pid_t parent = 0;
  uint64_t own_ticks = 0;       // utime + stime
  uint64_t children_ticks = 0;  // cutime + cstime
  uint64_t start = 0;
  uint64_t threads = 0;
  bool dead = false;  // and not yet reaped
  bool running = false;
};

class ProcTree {
 public:
  // `init` as seen from here. `proc` is for tests.
  ProcTree(pid_t init, std::string proc) : init_(init), proc_(std::move(proc)) {}

  // Init first; empty if it is gone. The walk ends with what it has once `must_stop` says so.
  std::vector<TreeProcess> Find(const std::function<bool()>& must_stop);

  std::string PathOf(pid_t pid, std::string_view name) const;

 private:
  bool ReadStat(TreeProcess& process) const;
  std::vector<std::string> ThreadsOf(const TreeProcess& process) const;
  // False if the kernel does not say which children a process has.
  bool FindByChildren(const std::function<bool()>& must_stop,
                      std::vector<TreeProcess>& found) const;
  void FindByScan(std::vector<TreeProcess>& found) const;

  pid_t init_;
  std::string proc_;
  bool has_children_files_ = true;
};

// Field `index` (1 is the first) of a space-separated line.
uint64_t FieldNumber(std::string_view line, int index);

}  // namespace coffer::limits
