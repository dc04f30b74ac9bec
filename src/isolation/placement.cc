// SPDX-License-Identifier: Apache-2.0
#include "isolation/placement.h"

#include <limits.h>
#include <sys/syscall.h>

#include "base/sys.h"

namespace coffer::isolation {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr unsigned kWordBits = sizeof(unsigned long) * CHAR_BIT;

int Count(const unsigned long* mask, long bytes) {
  int processors = 0;
  for (long i = 0; i < bytes / static_cast<long>(sizeof(*mask)); ++i) {
    processors += __builtin_popcountl(mask[i]);
  }
  return processors;
}

}  // namespace

void Placement::SendAway(pid_t process) {
  // Ours is what the process inherited.
  const long bytes = Syscall(SYS_sched_getaffinity, 0, sizeof(all_), Arg(all_));
  unsigned here = 0;
  if (bytes <= 0 || Count(all_, bytes) != 2 || Syscall(SYS_getcpu, Arg(&here), 0, 0) < 0) {
    return;
  }
  // Changed and changed back: a copy would be a kilobyte.
  unsigned long& word = all_[here / kWordBits];
  const unsigned long bit = 1UL << (here % kWordBits);
  if ((word & bit) == 0) {
    return;  // moved by somebody else meanwhile
  }
  word &= ~bit;
  const long sent = Syscall(SYS_sched_setaffinity, process, bytes, Arg(all_));
  word |= bit;
  bytes_ = sent < 0 ? 0 : bytes;
}

Status Placement::Restore(pid_t process) {
  if (bytes_ == 0) {
    return {};
  }
  const long answer = Syscall(SYS_sched_setaffinity, process, bytes_, Arg(all_));
  if (answer < 0) {
    return sys::ErrnoError("isolation.processors",
                           "cannot give the boundary all its processors back", answer);
  }
  bytes_ = 0;
  return {};
}

}  // namespace coffer::isolation
