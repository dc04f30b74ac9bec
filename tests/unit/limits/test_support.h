// SPDX-License-Identifier: Apache-2.0
//
// What the tests of limits/ share: a temporary directory, and children that live inside a Cgroup.
#pragma once

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "limits/cgroup/cgroup.h"
#include "tests/support/temp_dir.h"

// ThreadSanitizer gives every process a thread of its own and several times its memory: what counts either cannot hold.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define COFFER_COUNTS_ARE_INFLATED 1
#endif
#endif
#ifdef COFFER_COUNTS_ARE_INFLATED
#define SKIP_IF_COUNTS_ARE_INFLATED() \
  GTEST_SKIP() << "ThreadSanitizer adds a thread and memory to every process"
#else
#define SKIP_IF_COUNTS_ARE_INFLATED() static_cast<void>(0)
#endif

namespace coffer::limits {

using test::TempDir;

// Starts `body` in a child that is inside `cgroup` before it does anything, the way a boundary's init gets in. The
// child exits with what `body` returns, or 99 if it could not join.
template <typename Body>
pid_t SpawnInside(const Cgroup& cgroup, Body body) {
  pid_t pid = 0;
  if (cgroup.clone_into_fd() >= 0) {
    clone_args args{};
    args.flags = CLONE_INTO_CGROUP;
    args.exit_signal = SIGCHLD;
    args.cgroup = static_cast<uint64_t>(cgroup.clone_into_fd());
    pid = static_cast<pid_t>(::syscall(SYS_clone3, &args, sizeof(args)));
  } else {
    pid = ::fork();
  }
  if (pid == 0) {
    for (const int fd : cgroup.tasks_fds()) {
      if (::write(fd, "0", 1) != 1) {
        ::_exit(99);
      }
    }
    ::_exit(body());
  }
  return pid;
}

inline int WaitFor(pid_t pid, int options = 0) {
  int status = 0;
  while (::waitpid(pid, &status, options) < 0) {
  }
  return status;
}

// Waits until every process that holds the write end has gone. False after ten seconds.
inline bool EndOfFile(int read_end) {
  for (;;) {
    pollfd waiting{read_end, POLLIN, 0};
    if (::poll(&waiting, 1, 10000) <= 0) {
      return false;
    }
    char byte = 0;
    if (::read(read_end, &byte, 1) == 0) {
      return true;
    }
  }
}

// Reads one byte: a child says that it has come so far.
inline bool Ready(int read_end) {
  pollfd waiting{read_end, POLLIN, 0};
  char byte = 0;
  return ::poll(&waiting, 1, 10000) == 1 && ::read(read_end, &byte, 1) == 1;
}

inline void SpinCpu(int milliseconds) {
  timespec now{};
  do {
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  } while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < milliseconds);
}

}  // namespace coffer::limits
