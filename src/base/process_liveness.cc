// SPDX-License-Identifier: Apache-2.0
#include "base/process_liveness.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <string>
#include <string_view>

#include "base/sys.h"

namespace coffer {
namespace {

constexpr int kStateField = 3;  // of /proc/PID/stat, counted from 1; see proc(5)
constexpr int kStartField = 22;

// When a process began, by its stat from the state on; nothing if that cannot be read.
std::optional<Nanos> StartOf(std::string_view fields) {
  for (int field = kStateField; field < kStartField; ++field) {
    const size_t space = fields.find(' ');
    if (space == std::string_view::npos) {
      return std::nullopt;
    }
    fields.remove_prefix(space + 1);
  }
  int64_t ticks = 0;
  const long per_second = ::sysconf(_SC_CLK_TCK);
  if (std::from_chars(fields.data(), fields.data() + fields.size(), ticks).ec != std::errc() ||
      per_second <= 0) {
    return std::nullopt;
  }
  return Nanos(std::chrono::seconds(1)) / per_second * ticks;
}

}  // namespace

bool IsAlive(pid_t pid, std::optional<Nanos> made) {
  if (raw::Syscall(SYS_kill, pid, 0) == -ESRCH) {
    return false;
  }
  const Result<std::string> stat = sys::ReadFile("/proc/" + std::to_string(pid) + "/stat");
  if (!stat.ok()) {
    return stat.error().sys_errno != ENOENT;
  }
  const size_t name_end = stat->rfind(')');  // the name may hold anything
  if (name_end == std::string::npos || name_end + 2 >= stat->size()) {
    return true;
  }
  const std::string_view fields = std::string_view(*stat).substr(name_end + 2);
  if (fields.front() == 'Z' || fields.front() == 'X') {
    return false;
  }
  // Rounded down to a tick, so what looks later is later.
  const std::optional<Nanos> start = StartOf(fields);
  return !made || !start || *start <= *made;
}

}  // namespace coffer
