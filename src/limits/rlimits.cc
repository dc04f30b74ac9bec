// SPDX-License-Identifier: Apache-2.0
#include "limits/rlimits.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/sys.h"
#include "limits/cgroup/control_file.h"

namespace coffer::limits {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;
constexpr uint64_t kGiB = 1024 * kMiB;

void Add(RlimitTable& table, int resource, uint64_t soft, uint64_t hard) {
  table.entries[table.count++] = {resource, soft, hard};
}

uint64_t MemoryBackstop(uint64_t memory) {
  uint64_t fourfold = 0;
  if (__builtin_mul_overflow(memory, 4, &fourfold)) {
    return RLIM_INFINITY;
  }
  return std::max(fourfold, memory + kGiB);
}

}  // namespace

const RlimitEntry* RlimitTable::Find(int resource) const {
  for (size_t i = 0; i < count; ++i) {
    if (entries[i].resource == resource) {
      return &entries[i];
    }
  }
  return nullptr;
}

RlimitTable BuildRlimits(const policy::Limits& caps, bool cgroup_memory, uint64_t foreign_tasks,
                         bool host_files) {
  RlimitTable table;
  const auto cpu =
      static_cast<uint64_t>(std::chrono::ceil<std::chrono::seconds>(caps.cpu).count()) + 1;
  const uint64_t tasks = foreign_tasks + caps.processes + 1;  // init
  const uint64_t file = std::max(caps.disk, caps.tmp);
  // SIGXCPU at the soft limit, SIGKILL at the hard one (getrlimit(2)). It counts each process
  // alone, so it only catches one that spends the whole cap.
  Add(table, RLIMIT_CPU, cpu, cpu + 1);
  Add(table, RLIMIT_NPROC, tasks, tasks);
  Add(table, RLIMIT_NOFILE, caps.open_files, caps.open_files);
  if (host_files) {
    Add(table, RLIMIT_FSIZE, file, file);
  }
  Add(table, RLIMIT_MEMLOCK, 64 * kKiB, 64 * kKiB);
  Add(table, RLIMIT_MSGQUEUE, 0, 0);
  Add(table, RLIMIT_SIGPENDING, 256, 256);
  Add(table, RLIMIT_RTPRIO, 0, 0);
  Add(table, RLIMIT_NICE, 0, 0);
  Add(table, RLIMIT_RTTIME, 200'000, 200'000);  // microseconds; RTPRIO 0 is the limit, this its net
  Add(table, RLIMIT_STACK, 8 * kMiB, RLIM_INFINITY);  // it is memory like any other
  // The net below the samples of limits/tree_usage.h. It counts address space, of which programs
  // take more than they use, so it is far above the cap.
  if (!cgroup_memory) {
    Add(table, RLIMIT_DATA, MemoryBackstop(caps.memory), MemoryBackstop(caps.memory));
  }
  return table;
}

Result<uint64_t> CountTasksOf(uid_t uid) {
  TRY_ASSIGN(const UniqueFd proc, sys::Open("/proc", O_RDONLY | O_DIRECTORY));
  TRY_ASSIGN(const std::vector<sys::DirEntry> entries, sys::ListDir(proc.get()));
  uint64_t tasks = 0;
  for (const sys::DirEntry& entry : entries) {
    if (entry.name[0] < '1' || entry.name[0] > '9') {
      continue;
    }
    std::array<char, 4096> buffer;
    const std::string_view status =
        ReadControl(proc.get(), (entry.name + "/status").c_str(), buffer).value_or("");
    if (KeyedNumber(status, "Uid:", '\t') == uid) {
      tasks += KeyedNumber(status, "Threads:", '\t');
    }
  }
  return tasks;
}

}  // namespace coffer::limits
