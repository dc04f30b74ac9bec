// SPDX-License-Identifier: Apache-2.0
#include "limits/cgroup/v1.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <array>

#include "base/sys.h"
#include "limits/cgroup/control_file.h"

namespace coffer::limits {
namespace {

long Write(const std::string& dir, std::string_view name, std::string_view value) {
  std::string path = dir;
  path += name;
  return WriteControl(AT_FDCWD, path.c_str(), value);
}

uint64_t Number(const std::string& dir, std::string_view name) {
  std::string path = dir;
  path += name;
  return ReadNumber(AT_FDCWD, path.c_str()).value_or(0);
}

uint64_t KeyedV1(const std::string& dir, std::string_view name, std::string_view key) {
  std::string path = dir;
  path += name;
  std::array<char, 1024> buffer;
  return KeyedNumber(ReadControl(AT_FDCWD, path.c_str(), buffer).value_or(""), key);
}

Error CapErrorV1(std::string_view what, const std::string& dir, long negative_errno) {
  Error error = sys::ErrnoError("limits.cgroup.cap", fmt::format("cannot set {} in {}", what, dir),
                                negative_errno);
  error.hint = "coffer doctor says what this host's cgroups allow";
  return error;
}

}  // namespace

Status WriteMemoryCapsV1(const std::string& dir, uint64_t bytes) {
  const fmt::format_int value(bytes);
  const std::string_view text(value.data(), value.size());
  if (const long bad = Write(dir, "/memory.limit_in_bytes", text); bad < 0) {
    return CapErrorV1("memory.limit_in_bytes", dir, bad);
  }
  // Memory and swap together, after the limit of memory alone: the kernel refuses one that is below
  // it.
  long bad = Write(dir, "/memory.memsw.limit_in_bytes", text);
  if (bad == -ENOENT) {
    // The kernel does not count swap, so nothing of the call may be swapped.
    bad = Write(dir, "/memory.swappiness", "0");
  }
  if (bad < 0) {
    return CapErrorV1("memory.memsw.limit_in_bytes", dir, bad);
  }
  return {};
}

Status WriteSocketCapV1(const std::string& dir, uint64_t bytes) {
  const fmt::format_int value(bytes);
  const long bad = Write(dir, "/memory.kmem.tcp.limit_in_bytes", {value.data(), value.size()});
  if (bad < 0 && bad != -ENOENT) {
    return CapErrorV1("memory.kmem.tcp.limit_in_bytes", dir, bad);
  }
  return {};
}

Status WritePidsCapV1(const std::string& dir, uint64_t pids) {
  const fmt::format_int value(pids);
  if (const long bad = Write(dir, "/pids.max", {value.data(), value.size()}); bad < 0) {
    return CapErrorV1("pids.max", dir, bad);
  }
  return {};
}

uint64_t ReadOomKillsV1(const std::string& dir) {
  return KeyedV1(dir, "/memory.oom_control", "oom_kill");
}

void ReadMemoryV1(const std::string& dir, uint64_t cap, Usage& usage) {
  usage.memory_peak = Number(dir, "/memory.max_usage_in_bytes");
  if (OomPossible(usage.memory_peak, cap)) {
    usage.oom_kills = ReadOomKillsV1(dir);
  }
  // v1 counts the buffers of TCP and UDP apart, and its cap on them is soft: the kernel was seen to pass it threefold.
  if (const uint64_t buffers = Number(dir, "/memory.kmem.tcp.max_usage_in_bytes"); buffers > 0) {
    usage.memory_peak += buffers;
    usage.memory =
        Number(dir, "/memory.usage_in_bytes") + Number(dir, "/memory.kmem.tcp.usage_in_bytes");
  }
}

// The kernel's own memory is left out: v1 does not say how much of it could be reclaimed.
uint64_t ReadHeldMemoryV1(const std::string& dir) {
  std::array<char, 4096> buffer;
  const std::string_view text =
      ReadControl(AT_FDCWD, (dir + "/memory.stat").c_str(), buffer).value_or("");
  return KeyedNumber(text, "rss") + KeyedNumber(text, "shmem") +
         Number(dir, "/memory.kmem.tcp.usage_in_bytes");
}

void ReadPidsV1(const std::string& dir, uint64_t cap, Usage& usage) {
  usage.pids_peak = Number(dir, "/pids.peak");  // since Linux 6.1
  if (usage.pids_peak == 0) {
    usage.pids_peak = Number(dir, "/pids.current");
    usage.pids_denied = KeyedV1(dir, "/pids.events", "max");
  } else if (usage.pids_peak >= cap) {
    usage.pids_denied = KeyedV1(dir, "/pids.events", "max");
  }
}

uint64_t ParseBlkioTotal(std::string_view text) { return KeyedNumber(text, "Total"); }

void ReadIoV1(const std::string& dir, Usage& usage) {
  // One line per device and operation, so it may be long; the total is the last line.
  Result<std::string> text = sys::ReadFile(dir + "/blkio.throttle.io_service_bytes");
  usage.io_bytes = text.ok() ? ParseBlkioTotal(*text) : 0;
}

Result<Nanos> ReadCpuV1(const std::string& dir) {
  const std::string path = dir + "/cpuacct.usage";
  const std::optional<uint64_t> used = ReadNumber(AT_FDCWD, path.c_str());
  if (!used) {
    return HostFault("limits.cgroup.read", "cannot read " + path);
  }
  return Nanos(*used);
}

}  // namespace coffer::limits
