// SPDX-License-Identifier: Apache-2.0
//
// Files that the processes of a boundary keep alive without a name: files that were deleted, or never had a name
// (memfd, O_TMPFILE), and bytes in the queues of pipes and sockets. No directory shows them, so the holders are asked:
//
//   open        the descriptors of every thread: a thread may have a table of its own, and may outlive its leader
//   mapped      /proc/PID/maps; the size is read through map_files as root, and is unknown to an ordinary user.
//               Shared anonymous memory is such a file too: its pages stay when those who touched them are gone
//   in flight   descriptors inside the queue of a UNIX socket: the queue is peeked at, and they are looked at here
//   cwd         a directory that was removed keeps its blocks while a process stands in it
//   watched     instances of inotify keep events until they are read
//
// Counted on the way, because they are memory of the kernel: mappings, and, if asked for, file
// locks. No cgroup counts locks (Linux 6.18), and RLIMIT_LOCKS has no effect. Every lock shows in
// fdinfo of the descriptor that it was taken through.
//
// It fails closed. A living process that cannot be looked at is named in `unreadable`. What is
// known to be there and cannot be measured is counted in `unmeasured`: the caller charges it with
// whatever the file system has lost meanwhile. All processes run on while they are looked at one by
// one, so a file can be handed on just ahead of the walk. `settled` says that no process came or
// went meanwhile; the walk is repeated a few times until that is so. A file that is passed between
// living processes can be missed by one walk, not by one after the other: to be seen once is
// enough.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "limits/mapping.h"

namespace coffer::limits {

struct HeldFiles {
  std::map<FileId, uint64_t> files;  // without a name: allocated bytes
  std::map<FileId, uint64_t>
      mapped;  // the same, of unknown size: the highest offset that is mapped
  std::map<FileId, uint64_t> shared;  // shared anonymous memory of unknown size, likewise
  std::map<FileId, uint64_t> queues;  // pipes and sockets: bytes of kernel memory
  uint64_t unread_events = 0;         // of inotify: the same
  std::set<uint64_t> sockets;         // inodes of those that could be asked
  uint64_t unix_sockets = 0;          // of these
  uint64_t closed_senders = 0;      // senders of unread messages that were closed (queue_memory.h)
  uint64_t unmeasured_flights = 0;  // descriptors in flight that could not be looked at
  uint64_t mappings = 0;
  uint64_t locks = 0;
  bool all_locks = true;  // false: there are more, on one descriptor or where the time ran out
  bool settled = true;
  std::string unreadable;  // empty, or which process cannot be looked at

  uint64_t BytesOn(uint64_t device) const;
  uint64_t BytesElsewhere(std::span<const uint64_t> devices) const;
  uint64_t QueuedBytes() const;
};

// `list` gives the processes of the boundary, as of now. Processes that end meanwhile hold nothing.
// Once `out_of_time` says so, the files found so far are the answer. To count locks costs one more
// file for each descriptor, so it is a walk of its own: kOnly looks at nothing else.
enum class Locks : uint8_t { kIgnore, kOnly };
HeldFiles FindHeldFiles(
    const std::function<std::vector<pid_t>()>& list, const std::string& proc = "/proc",
    const std::function<bool()>& out_of_time = [] { return false; }, Locks locks = Locks::kIgnore);

// The device number of memfds, anonymous shared memory and System V segments; 0 if it cannot be told.
uint64_t MemfdDevice();

}  // namespace coffer::limits
