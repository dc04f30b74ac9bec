// SPDX-License-Identifier: Apache-2.0
//
// The thread whose system call waits for the supervisor's answer, seen through /proc: its memory, its descriptors, its
// working directory.
//
// All of it is hostile, and can change while it is read. The answer belongs to the waiting thread only if it still waits
// afterwards (StillWaits): otherwise another thread may have its number by now. Needs the right to trace it, which the
// supervisor has over its own descendants; without it nothing can be read.
#pragma once

#include <linux/seccomp.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace coffer::isolation {

// Answers a call that waits, with 0 or -errno. False if its thread is gone.
bool AnswerCall(int notify_fd, uint64_t id, long answer);

// True if the supervisor may duplicate descriptors of a payload's. Docker's own filter forbids the
// call that does it, and Yama can forbid everything of the kind.
bool CanDuplicateDescriptors();
inline constexpr std::string_view kNoDuplicates =
    "this host does not let the supervisor duplicate descriptors of a payload";
inline constexpr std::string_view kNoDuplicatesFix =
    "allow pidfd_getfd (Docker: --cap-add SYS_PTRACE), and set kernel.yama.ptrace_scope below 3";

class WaitingThread {
 public:
  WaitingThread(int notify_fd, const seccomp_notif& request);

  // As many bytes as can be read, at most `size`; nothing if that is none.
  std::optional<std::string> Read(uint64_t address, size_t size);
  // Up to the first zero; nothing if there is none within `limit`.
  std::optional<std::string> ReadText(uint64_t address, size_t limit);
  template <typename T>
  bool ReadObject(uint64_t address, T* object) {
    const std::optional<std::string> bytes = Read(address, sizeof(T));
    if (!bytes || bytes->size() != sizeof(T)) {
      return false;
    }
    std::memcpy(object, bytes->data(), sizeof(T));
    return true;
  }

  // The name in /proc of one of its descriptors, or of its working directory (AT_FDCWD).
  std::string Descriptor(int fd) const;
  // The name in /proc of its root.
  std::string Root() const { return proc_ + "root"; }
  // A duplicate of one of its descriptors, or -errno (pidfd_getfd, Linux 5.6).
  long Duplicate(int fd) const;
  // True if all of it was written.
  bool Write(uint64_t address, const void* bytes, size_t size);

  bool StillWaits() const;
  // True if a signal that it has a handler for came since: a call that it made itself would have been interrupted.
  bool HasSignal() const;

 private:
  int notify_fd_;
  uint64_t id_;
  pid_t thread_;
  std::string proc_;
  UniqueFd memory_;
};

}  // namespace coffer::isolation
