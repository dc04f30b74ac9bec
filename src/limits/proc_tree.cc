// SPDX-License-Identifier: Apache-2.0
#include "limits/proc_tree.h"

#include <fcntl.h>

#include <array>
#include <charconv>
#include <optional>

#include "base/sys.h"
#include "limits/cgroup/control_file.h"

namespace coffer::limits {
namespace {

// A walk must end even if the tree grows faster than it is walked.
constexpr size_t kMostProcesses = 65536;

std::vector<std::string> NamesIn(const std::string& directory) {
  std::vector<std::string> names;
  const Result<UniqueFd> fd = sys::Open(directory, O_RDONLY | O_DIRECTORY);
  Result<std::vector<sys::DirEntry>> entries =
      fd.ok() ? sys::ListDir(fd->get()) : std::vector<sys::DirEntry>();
  if (entries.ok()) {
    for (sys::DirEntry& entry : *entries) {
      names.push_back(std::move(entry.name));
    }
  }
  return names;
}

}  // namespace

uint64_t FieldNumber(std::string_view line, int index) {
  for (; index > 1; --index) {
    const size_t space = line.find(' ');
    if (space == std::string_view::npos) {
      return 0;
    }
    line.remove_prefix(space + 1);
  }
  uint64_t number = 0;
  std::from_chars(line.data(), line.data() + line.size(), number);
  return number;
}

std::string ProcTree::PathOf(pid_t pid, std::string_view name) const {
  std::string path = proc_ + "/" + std::to_string(pid) + "/";
  path += name;
  return path;
}

bool ProcTree::ReadStat(TreeProcess& process) const {
  std::array<char, 1024> buffer;
  const std::optional<std::string_view> text =
      ReadControl(AT_FDCWD, PathOf(process.pid, "stat").c_str(), buffer);
  if (!text) {
    return false;
  }
  // The name is in parentheses and may contain anything, so count from the last one: the state is field 3.
  const size_t name_end = text->rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 > text->size()) {
    return false;
  }
  const std::string_view rest = text->substr(name_end + 2);
  const auto field = [&](int number) { return FieldNumber(rest, number - 2); };
  process.dead = rest.front() == 'Z' || rest.front() == 'X';
  process.running = rest.front() == 'R';
  process.parent = static_cast<pid_t>(field(4));
  process.own_ticks = field(14) + field(15);
  process.children_ticks = field(16) + field(17);
  process.threads = field(20);
  process.start = field(22);
  return true;
}

std::vector<std::string> ProcTree::ThreadsOf(const TreeProcess& process) const {
  return process.threads > 1 ? NamesIn(PathOf(process.pid, "task"))
                             : std::vector<std::string>{std::to_string(process.pid)};
}

bool ProcTree::FindByChildren(const std::function<bool()>& must_stop,
                              std::vector<TreeProcess>& found) const {
  std::vector<pid_t> pids = {init_};
  for (size_t at = 0; at < pids.size() && pids.size() < kMostProcesses && !must_stop(); ++at) {
    TreeProcess process{.pid = pids[at]};
    if (!ReadStat(process)) {
      continue;  // gone; its children are now init's, and seen next time
    }
    found.push_back(process);
    bool listed = false;
    for (const std::string& thread : ThreadsOf(process)) {
      const Result<std::string> children =
          sys::ReadFile(PathOf(process.pid, "task/" + thread + "/children"));
      if (children.ok()) {
        listed = true;
        const std::vector<pid_t> more = ParsePids(*children);
        pids.insert(pids.end(), more.begin(), more.end());
      }
    }
    if (!listed && process.pid == init_ && ReadStat(process)) {
      return false;  // no such file for a process that lives: the kernel has no CONFIG_PROC_CHILDREN
    }
  }
  return true;
}

void ProcTree::FindByScan(std::vector<TreeProcess>& found) const {
  std::vector<TreeProcess> all;
  for (const std::string& name : NamesIn(proc_)) {
    TreeProcess process;
    std::from_chars(name.data(), name.data() + name.size(), process.pid);
    if (process.pid > 0 && ReadStat(process)) {
      all.push_back(process);
    }
  }
  for (const TreeProcess& process : all) {
    if (process.pid == init_) {
      found.push_back(process);
    }
  }
  for (size_t at = 0; at < found.size(); ++at) {
    const pid_t parent = found[at].pid;
    for (const TreeProcess& process : all) {
      if (process.parent == parent && process.pid != init_) {
        found.push_back(process);
      }
    }
  }
}

std::vector<TreeProcess> ProcTree::Find(const std::function<bool()>& must_stop) {
  std::vector<TreeProcess> found;
  if (has_children_files_ && !FindByChildren(must_stop, found)) {
    has_children_files_ = false;
    found.clear();
  }
  if (!has_children_files_) {
    FindByScan(found);
  }
  return !found.empty() && found.front().pid == init_ ? found : std::vector<TreeProcess>();
}

}  // namespace coffer::limits
