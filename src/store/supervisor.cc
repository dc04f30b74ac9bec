// SPDX-License-Identifier: Apache-2.0
#include "store/supervisor.h"

#include <errno.h>
#include <unistd.h>

#include <charconv>

#include "base/sys.h"

namespace coffer::store {
namespace {

struct Stat {
  char state = 0;
  uint64_t start_time = 0;
};

// proc(5): "pid (name) state ppid ... starttime ..."; the name may hold anything, so everything is
// counted from its end.
Result<Stat> ReadStat(int64_t pid) {
  TRY_ASSIGN(const std::string text, sys::ReadFile("/proc/" + std::to_string(pid) + "/stat"));
  const size_t name_end = text.rfind(") ");
  size_t at = name_end == std::string::npos ? text.size() : name_end + 2;
  Stat stat;
  stat.state = at < text.size() ? text[at] : 0;
  for (int field = 3; field < 22 && at < text.size(); ++field) {
    at = text.find(' ', at);
    at = at == std::string::npos ? text.size() : at + 1;
  }
  const auto [end, problem] =
      std::from_chars(text.data() + at, text.data() + text.size(), stat.start_time);
  if (problem != std::errc()) {
    return Internal("store.proc", "/proc/PID/stat does not read as proc(5) says");
  }
  return stat;
}

Result<std::string> BootId() {
  TRY_ASSIGN(std::string id, sys::ReadFile("/proc/sys/kernel/random/boot_id"));
  while (!id.empty() && id.back() == '\n') {
    id.pop_back();
  }
  return id;
}

}  // namespace

Result<Supervisor> SupervisorOf(int64_t pid) {
  TRY_ASSIGN(const Stat stat, ReadStat(pid));
  TRY_ASSIGN(std::string boot, BootId());
  return Supervisor{pid, stat.start_time, std::move(boot)};
}

Result<Supervisor> ThisProcess() { return SupervisorOf(::getpid()); }

Result<bool> IsAlive(const Supervisor& supervisor) {
  TRY_ASSIGN(const std::string boot, BootId());
  if (boot != supervisor.boot_id) {
    return false;
  }
  const Result<Stat> stat = ReadStat(supervisor.pid);
  if (!stat.ok()) {
    const int problem = stat.error().sys_errno;
    if (problem == ENOENT || problem == ESRCH) {
      return false;
    }
    return stat.error();
  }
  return stat->start_time == supervisor.start_time && stat->state != 'Z' && stat->state != 'X';
}

}  // namespace coffer::store
