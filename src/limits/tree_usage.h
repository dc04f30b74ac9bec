// SPDX-License-Identifier: Apache-2.0
//
// TreeUsage adds up what a process tree (proc_tree.h) uses, from /proc: the stand-in where no cgroup may be made.
//
// Processes: a dead one counts until its parent reaps it, as in a cgroup. Dead children of init do
// not count: init reaps them, but can be slower than the program forks. CPU: see tree_cpu.h. Memory:
// resident pages first, which overstates (shared pages count once for each process); only if that
// exceeds the cap are proportional sizes read, which are exact and slow. Page tables, queues of
// pipes and sockets, files in the given tmpfs mounts and memfds that are held (held_files.h) are
// added; where they are mapped as well, the larger of both views counts, so that nothing counts
// twice. Mappings and file locks are added with what each takes in the kernel. UNIX sockets that
// were closed while their messages are unread, or whose descriptor is in flight out of sight, can
// only be counted: each is charged with the most it can hold. Shared memory of unknown size is
// charged with what the host's has grown by; shared anonymous memory with no more than the most
// that was seen mapped of it. I/O: what the living and those they reaped have moved; what vanishes
// from that sum stays counted.
//
// It fails closed: if a living process cannot be looked at, Usage::unreadable says which, and that
// is a breach. And it samples: a burst between two samples is seen late, and other memory of the
// kernel (cached names, semaphores) is not seen. So the receipt calls these figures not enforced.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "limits/held_files.h"
#include "limits/network_memory.h"
#include "limits/proc_tree.h"
#include "limits/tree_cpu.h"
#include "limits/usage.h"

namespace coffer::limits {

class TreeUsage {
 public:
  // `init` as seen from here. `memory_cap` is the size above which exact sizes are read. `proc` is for tests.
  TreeUsage(pid_t init, uint64_t memory_cap, std::string proc = "/proc");

  // A tmpfs of the boundary whose contents count as memory: a descriptor of any directory or file in it. Borrowed.
  void CountTmpfs(int fd) { tmpfs_.push_back(fd); }

  // The boundary has a network namespace of its own: sockets in it that no descriptor leads to count as memory.
  void CountNetwork() { own_network_ = true; }

  // A sample ends at this moment of BootTime with what it has: the wall time is spent, and nothing may delay the kill.
  void StopAt(Nanos moment) { stop_at_ = moment; }

  // One sample; peaks and CPU never shrink. An error only if init itself cannot be read (it is gone).
  Result<Usage> Measure();

  // Bytes of file locks, of netlink queues and of what UDP sockets hold beside received datagrams,
  // which no cgroup counts: for a boundary whose memory is measured otherwise. To take them costs CPU time, so a tree that has used little since the
  // last look is not looked at again.
  uint64_t MeasureUncounted(Nanos cpu);

  // Only how many processes and threads there are now, init included: a fraction of a sample. 0 if init is gone.
  uint64_t CountTasks();

  // All processes of the tree at the last Measure, init first.
  const std::vector<pid_t>& pids() const { return pids_; }
  // What they held then.
  const HeldFiles& held() const { return held_; }
  // The devices of files that are memory: memfds, and the given tmpfs mounts.
  std::vector<uint64_t> MemoryDevices() const;

 private:
  // A file of /proc/PID about its memory; of another thread where the first one has ended and shows none.
  std::string_view ReadMemory(pid_t pid, const char* name, std::span<char> buffer) const;
  // True once a sample has taken more of our own time than any honest tree costs: it is given up, and is a breach.
  bool OutOfTime() const;
  // The same, or the moment to stop has come, which is no breach of this one's.
  bool MustStop() const;
  std::vector<TreeProcess> FindProcesses();
  uint64_t TasksOf(const std::vector<TreeProcess>& processes) const;
  std::vector<pid_t> Payload();
  uint64_t MemoryNow(uint64_t queues);
  uint64_t FilesInMemory();
  // The most that shared anonymous memory without a known size can be.
  uint64_t SharedAnonymous() const;
  void RememberShared();
  uint64_t PageTables() const;
  // By how much the kernel's own memory has grown on this host since the start; locks cannot be more.
  uint64_t KernelGrowth() const;
  bool LocksAreDue(Nanos cpu) const;
  void LookAtLocks(Nanos cpu);
  void LookAtNetlink(Nanos cpu);
  void LookAtUdp(Nanos cpu);
  // Queues of pipes and sockets, as far as they can be measured or bounded. Names what cannot in `unreadable`.
  uint64_t Queues(const std::optional<SocketsInUse>& before, std::string& unreadable);
  uint64_t IoNow();

  pid_t init_;
  uint64_t memory_cap_;
  std::string proc_;
  ProcTree tree_;
  TreeCpu cpu_;
  uint64_t page_size_;
  std::vector<int> tmpfs_;
  std::vector<pid_t> pids_;
  uint64_t memfd_device_ = 0;
  uint64_t start_shmem_ = 0;
  uint64_t lowest_shmem_ = 0;  // since there is shared memory of unknown size
  uint64_t start_kernel_ = 0;
  Nanos next_lock_look_{0};
  Nanos cpu_at_lock_look_{0}, ran_at_lock_look_{0};
  uint64_t lock_bytes_ = 0;
  Nanos next_netlink_look_{0};
  Nanos cpu_at_netlink_look_{0};
  uint64_t netlink_bytes_ = 0;
  Nanos next_udp_look_{0};
  Nanos cpu_at_udp_look_{0};
  uint64_t udp_bytes_ = 0;
  HeldFiles held_;
  std::map<FileId, uint64_t> most_shared_;  // as held_.shared: the highest offset of any sample
  bool own_network_ = false;
  HiddenTcp hidden_tcp_;
  Nanos stop_at_ = Nanos::max();
  uint64_t io_sum_ = 0;
  uint64_t io_lost_ = 0;   // of processes that vanished without being reaped
  Nanos sample_began_{0};  // of this thread's CPU time
  Usage last_;
};

// Bytes to and from block devices, of `pid` and the children it has reaped: one file, also of a process that has
// exited and was not yet waited for. For hosts without an I/O cgroup. 0 if it may not be read.
uint64_t ReadIoOf(pid_t pid, const std::string& proc = "/proc");

}  // namespace coffer::limits
