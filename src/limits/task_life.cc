// SPDX-License-Identifier: Apache-2.0
#include "limits/task_life.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "limits/cgroup/control_file.h"

namespace coffer::limits {
namespace {

constexpr uint64_t kExiting = 0x4;  // PF_EXITING, in the flags of /proc/PID/stat

}  // namespace

TaskLife LifeOfTask(const std::string& task) {
  std::array<char, 1024> buffer;
  const std::string_view stat = ReadControl(AT_FDCWD, (task + "stat").c_str(), buffer).value_or("");
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 >= stat.size()) {
    return TaskLife::kGone;
  }
  std::string_view rest = stat.substr(name_end + 2);
  if (rest.front() == 'Z' || rest.front() == 'X') {
    return TaskLife::kGone;
  }
  // The flags are the ninth field (proc_pid_stat(5)); `rest` begins with the third.
  for (int field = 3; field < 9 && !rest.empty(); ++field) {
    rest.remove_prefix(std::min(rest.find(' '), rest.size() - 1) + 1);
  }
  uint64_t flags = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), flags);
  return (flags & kExiting) != 0 ? TaskLife::kEnding : TaskLife::kAlive;
}

}  // namespace coffer::limits
