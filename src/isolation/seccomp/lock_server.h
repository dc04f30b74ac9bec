// SPDX-License-Identifier: Apache-2.0
//
// flock(2) with LOCK_EX beside files that may only be read, made by the supervisor.
//
// A process that may read a file may also lock it exclusively, and programs of the host that lock
// before they write would wait until the call ends. A filter sees neither the file nor the mount
// behind a descriptor. So it hands every LOCK_EX to this server; shared locks and unlocking go on
// as ever, and fcntl asks for write access by itself. Such a lock belongs to the open file, so one
// that is taken on a duplicate of the payload's descriptor is the payload's.
//
//   a file that may be written    it is locked, or tried again until it is had, the caller is gone or a signal came
//   any other                     EROFS, recorded
//
// The payload's own call never goes on, so a descriptor that is replaced meanwhile decides nothing.
// A thread does all of it, because a file system can hang; a payload that makes it hang keeps its
// own further locks waiting.
#pragma once

#include <linux/seccomp.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace coffer::isolation {

// True if the mount that `file` was opened through can be written.
bool OnWritableMount(int file);

class LockServer {
 public:
  // Says of a descriptor whether its file may be written, from any thread.
  using MayWrite = std::function<bool(int file)>;
  explicit LockServer(MayWrite may_write);
  ~LockServer();
  LockServer(const LockServer&) = delete;
  LockServer& operator=(const LockServer&) = delete;

  // -errno to answer at once; 0: the answer comes later, or the caller is gone. Nothing: refuse and record it, because
  // the caller cannot be read.
  std::optional<long> Take(int notify_fd, const seccomp_notif& request);

  // How many locks were refused since the last time.
  uint64_t TakeRefused();

  static constexpr size_t kMostWaiting = 256;

 private:
  struct Work;
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace coffer::isolation
