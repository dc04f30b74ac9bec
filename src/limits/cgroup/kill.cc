// SPDX-License-Identifier: Apache-2.0
#include "limits/cgroup/kill.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "base/sys.h"
#include "limits/cgroup/backoff.h"
#include "limits/cgroup/control_file.h"

namespace coffer::limits {
namespace {

using raw::Arg;
using raw::Syscall;

struct Pinned {
  pid_t pid;
  UniqueFd fd;
};

constexpr size_t kBatch = 64;  // descriptors we may need at once, even with a small RLIMIT_NOFILE

// SIGKILL to `pids`, a batch of them at a time.
Status Signal(const std::string& dir, std::span<const pid_t> pids) {
  while (!pids.empty()) {
    const std::span<const pid_t> batch = pids.subspan(0, std::min(pids.size(), kBatch));
    pids = pids.subspan(batch.size());
    std::vector<Pinned> pinned;
    for (const pid_t pid : batch) {
      const long fd = Syscall(SYS_pidfd_open, pid, 0);
      if (fd >= 0) {
        pinned.push_back({pid, UniqueFd(static_cast<int>(fd))});
      } else if (fd != -ESRCH && pinned.empty()) {
        return sys::ErrnoError("limits.cgroup.kill", "cannot pin a process in " + dir, fd);
      }
    }
    TRY_ASSIGN(const std::vector<pid_t> still, ReadProcs(dir));
    for (const Pinned& one : pinned) {
      if (std::binary_search(still.begin(), still.end(), one.pid)) {
        Syscall(SYS_pidfd_send_signal, one.fd.get(), SIGKILL, 0, 0);
      }
    }
  }
  return {};
}

}  // namespace

Result<std::vector<pid_t>> ReadProcs(const std::string& dir) {
  TRY_ASSIGN(const std::string text, sys::ReadFile(dir + "/cgroup.procs", 64 << 20));
  std::vector<pid_t> pids = ParsePids(text);
  std::sort(pids.begin(), pids.end());
  return pids;
}

Status SignalOnce(const std::string& dir) {
  TRY_ASSIGN(const std::vector<pid_t> pids, ReadProcs(dir));
  return Signal(dir, pids);
}

Status KillByPid(const std::string& dir) {
  Backoff backoff(kKillPatience);
  for (;;) {
    Result<std::vector<pid_t>> pids = ReadProcs(dir);
    if (!pids.ok()) {
      return pids.error().sys_errno == ENOENT || pids.error().sys_errno == ENODEV
                 ? Status()
                 : Status(pids.error());
    }
    if (pids->empty()) {
      return {};
    }
    TRY(Signal(dir, *pids));
    if (!backoff.Wait()) {
      return HostFault("limits.cgroup.kill", "processes in " + dir + " do not die",
                       "they wait for the kernel, usually for a disk or a network file system");
    }
  }
}

Status KillV2(const std::string& dir) {
  const long bad = WriteControl(AT_FDCWD, (dir + "/cgroup.kill").c_str(), "1");
  if (bad == -ENOENT) {
    WriteControl(AT_FDCWD, (dir + "/cgroup.freeze").c_str(), "1");
    return KillByPid(dir);
  }
  if (bad < 0) {
    return sys::ErrnoError("limits.cgroup.kill", "cannot write " + dir + "/cgroup.kill", bad);
  }
  Backoff backoff(kKillPatience);
  const std::string events = dir + "/cgroup.events";
  std::array<char, 256> buffer;
  for (;;) {
    const std::optional<std::string_view> text = ReadControl(AT_FDCWD, events.c_str(), buffer);
    if (!text || KeyedNumber(*text, "populated") == 0) {
      return {};
    }
    if (!backoff.Wait()) {
      return HostFault("limits.cgroup.kill", "processes in " + dir + " do not die",
                       "they wait for the kernel, usually for a disk or a network file system");
    }
  }
}

Status RemoveCgroupDir(const std::string& dir) {
  Backoff backoff(kKillPatience);
  for (;;) {
    const long answer = Syscall(SYS_unlinkat, AT_FDCWD, Arg(dir.c_str()), AT_REMOVEDIR);
    if (answer == 0 || answer == -ENOENT) {
      return {};
    }
    // EBUSY: a process that was killed is still on its way out.
    if (answer != -EBUSY || !backoff.Wait()) {
      return sys::ErrnoError("limits.cgroup.remove", "cannot remove " + dir, answer);
    }
  }
}

}  // namespace coffer::limits
