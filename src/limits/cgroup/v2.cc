// SPDX-License-Identifier: Apache-2.0
#include "limits/cgroup/v2.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <charconv>

#include "base/sys.h"
#include "limits/cgroup/control_file.h"
#include "limits/cgroup/mounts.h"
#include "limits/cgroup/name.h"

namespace coffer::limits {
namespace {

Error CapErrorV2(std::string_view what, long negative_errno) {
  Error error =
      sys::ErrnoError("limits.cgroup.cap", fmt::format("cannot set {}", what), negative_errno);
  error.hint = "coffer doctor says what this host's cgroups allow";
  return error;
}

uint64_t KeyedV2(int dir, const char* name, std::string_view key) {
  std::array<char, 2048> buffer;
  return KeyedNumber(ReadControl(dir, name, buffer).value_or(""), key);
}

// True if everything `enable` names is in cgroup.subtree_control already.
bool Distributes(int dir, std::string_view enable) {
  std::string plain;
  for (const char c : enable) {
    if (c != '+') {
      plain += c;
    }
  }
  std::array<char, 512> buffer;
  const ControllerBits wanted = ParseControllers(plain, ' ');
  const std::string_view now = ReadControl(dir, "cgroup.subtree_control", buffer).value_or("");
  return (ParseControllers(now, ' ') & wanted) == wanted;
}

// A cgroup that holds processes cannot pass controllers on (cgroups(7), "no internal processes").
// So we leave ours for a leaf below it. 0 stands for the process that writes.
Status MoveSelf(const CgroupHost& host, int dir) {
  const std::string leaf = SupervisorLeafName(host.pid_namespace);
  if (Status made = sys::MakeDirAt(dir, leaf, 0755);
      !made.ok() && made.error().sys_errno != EEXIST) {
    return made;
  }
  const long bad = WriteControl(dir, (leaf + "/cgroup.procs").c_str(), "0");
  if (bad < 0) {
    (void)sys::RemoveDirAt(dir, leaf);
    return sys::ErrnoError("limits.cgroup.move", "cannot move into a leaf of " + host.v2_dir, bad);
  }
  return {};
}

}  // namespace

Status WriteMemoryCapsV2(int dir, uint64_t bytes) {
  const fmt::format_int value(bytes);
  if (const long bad = WriteControl(dir, "memory.max", {value.data(), value.size()}); bad < 0) {
    return CapErrorV2("memory.max", bad);
  }
  // A kernel that does not count swap has no such file.
  if (const long bad = WriteControl(dir, "memory.swap.max", "0"); bad < 0 && bad != -ENOENT) {
    return CapErrorV2("memory.swap.max", bad);
  }
  // The OOM killer then ends all of the call, not one process of it.
  if (const long bad = WriteControl(dir, "memory.oom.group", "1"); bad < 0) {
    return CapErrorV2("memory.oom.group", bad);
  }
  return {};
}

Status WritePidsCapV2(int dir, uint64_t pids) {
  const fmt::format_int value(pids);
  if (const long bad = WriteControl(dir, "pids.max", {value.data(), value.size()}); bad < 0) {
    return CapErrorV2("pids.max", bad);
  }
  return {};
}

uint64_t ReadOomKillsV2(int dir) { return KeyedV2(dir, "memory.events", "oom_kill"); }

void ReadMemoryV2(int dir, uint64_t cap, Usage& usage) {
  const std::optional<uint64_t> peak = ReadNumber(dir, "memory.peak");  // since Linux 5.19
  if (peak) {
    usage.memory_peak = *peak;
  } else {
    usage.memory = ReadNumber(dir, "memory.current").value_or(0);
    usage.memory_peak = usage.memory;
  }
  if (!peak || OomPossible(*peak, cap)) {
    usage.oom_kills = ReadOomKillsV2(dir);
  }
}

uint64_t ReadHeldMemoryV2(int dir) {
  std::array<char, 4096> buffer;
  const std::string_view text = ReadControl(dir, "memory.stat", buffer).value_or("");
  uint64_t sum = 0;
  for (const char* key :
       {"anon", "shmem", "kernel_stack", "pagetables", "sock", "slab_unreclaimable"}) {
    sum += KeyedNumber(text, key);
  }
  return sum;
}

void ReadPidsV2(int dir, uint64_t cap, Usage& usage) {
  const std::optional<uint64_t> peak = ReadNumber(dir, "pids.peak");  // since Linux 6.1
  usage.pids_peak = peak ? *peak : ReadNumber(dir, "pids.current").value_or(0);
  if (!peak || *peak >= cap) {
    usage.pids_denied = KeyedV2(dir, "pids.events", "max");
  }
}

uint64_t ParseIoStat(std::string_view text) {
  uint64_t total = 0;
  for (const std::string_view key : {std::string_view(" rbytes="), std::string_view(" wbytes=")}) {
    for (size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
      uint64_t number = 0;
      std::from_chars(text.data() + at + key.size(), text.data() + text.size(), number);
      total += number;
    }
  }
  return total;
}

void ReadIoV2(int dir, Usage& usage) {
  Result<std::string> text = sys::ReadFileAt(dir, "io.stat");
  usage.io_bytes = text.ok() ? ParseIoStat(*text) : 0;
}

Result<Nanos> ReadCpuV2(int dir) {
  std::array<char, 2048> buffer;
  const std::optional<std::string_view> text = ReadControl(dir, "cpu.stat", buffer);
  if (!text) {
    return HostFault("limits.cgroup.read", "cannot read cpu.stat");
  }
  return Nanos(std::chrono::microseconds(KeyedNumber(*text, "usage_usec")));
}

Status PrepareV2Parent(const CgroupHost& host, bool io) {
  std::string enable = host.v2_enable;
  if (io && host.v2_enable_io) {
    enable += enable.empty() ? "+io" : " +io";
  }
  if (enable.empty()) {
    return {};
  }
  TRY_ASSIGN(const UniqueFd dir, sys::Open(host.v2_dir, O_PATH | O_DIRECTORY));
  if (Distributes(dir.get(), enable)) {
    return {};  // an earlier call of this process, or another one, did it
  }
  if (host.v2_move_self) {
    TRY(MoveSelf(host, dir.get()));
  }
  const long bad = WriteControl(dir.get(), "cgroup.subtree_control", enable);
  if (bad == -EBUSY) {
    if (host.v2_move_self) {  // others came in since the probe: go back, leave nothing
      (void)WriteControl(dir.get(), "cgroup.procs", "0");
      (void)sys::RemoveDirAt(dir.get(), SupervisorLeafName(host.pid_namespace));
    }
    Error error = sys::ErrnoError(
        "limits.cgroup.busy",
        "cannot give " + host.v2_dir + " memory and pids limits while it holds other processes",
        bad);
    error.hint =
        "start coffer alone in its cgroup: systemd-run --user --scope -p Delegate=yes coffer ...";
    return error;
  }
  if (bad < 0) {
    return sys::ErrnoError("limits.cgroup.enable",
                           "cannot write " + host.v2_dir + "/cgroup.subtree_control", bad);
  }
  return {};
}

}  // namespace coffer::limits
