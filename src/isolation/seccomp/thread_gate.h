// SPDX-License-Identifier: Apache-2.0
//
// A ThreadGate counts the threads of a boundary where no pids cgroup does: each clone of a thread
// waits for its answer, and one above the cap is refused with EAGAIN, as the kernel would, and
// counted.
//
// Without it nothing tells that a thread was refused: RLIMIT_NPROC leaves no trace, and a program
// that was refused a thread has often ended before its processes can be looked at. A clone that is
// let through goes on in the kernel. That is safe because the filter and the gate see all that it
// asks for: its flags are a register, which cannot change while its thread waits. New processes are
// not asked for: a signal can interrupt the wait, and programs do not expect that of fork. While
// they make a thread, glibc (2.32), musl and Go block all signals.
#pragma once

#include <linux/seccomp.h>

#include <cstdint>
#include <functional>
#include <utility>

#include "isolation/seccomp/profile.h"

namespace coffer::isolation {

// Makes `profile`, which lets threads be made, leave each of them to the supervisor.
void AskForThreads(Profile& profile);

class ThreadGate {
 public:
  // There may be `most` processes and threads, init included. `count` says how many there are; 0: init is gone.
  ThreadGate(uint64_t most, std::function<uint64_t()> count)
      : most_(most), known_(most), count_(std::move(count)) {}

  // Whether `call` makes a thread, in no namespace of its own. Any other clone is not the gate's.
  static bool Asks(const seccomp_data& call);

  // Whether one more may be made.
  bool Admit();
  // A count that was made for another reason. It can only raise what is known, by processes that were made meanwhile: a
  // thread that was let through just now may not be there yet.
  void Counted(uint64_t tasks);

  uint64_t refused() const { return refused_; }
  uint64_t counts() const { return counts_; }  // how often the processes had to be counted

 private:
  const uint64_t most_;
  uint64_t known_;         // at the last count
  uint64_t admitted_ = 0;  // since then
  uint64_t refused_ = 0;
  uint64_t counts_ = 0;
  std::function<uint64_t()> count_;
};

}  // namespace coffer::isolation
