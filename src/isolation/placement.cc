// SPDX-License-Identifier: Apache-2.0
#include "isolation/placement.h"

#include <limits.h>
#include <sys/syscall.h>

#include <utility>

#include "base/sys.h"

namespace coffer::isolation {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr unsigned kWordBits = sizeof(unsigned long) * CHAR_BIT;

// The numbers of the two processors in `mask`; false if it has more or fewer.
bool Numbers(const unsigned long* mask, long bytes, int* two) {
  int found = 0;
  for (long i = 0; i < bytes / static_cast<long>(sizeof(*mask)); ++i) {
    for (unsigned long left = mask[i]; left != 0; left &= left - 1) {
      if (found == 2) {
        return false;
      }
      two[found++] = static_cast<int>(i * kWordBits) + __builtin_ctzl(left);
    }
  }
  return found == 2;
}

// The one of the two that we are not on; -1 if we are on neither.
int Other(const int* two) {
  unsigned here = 0;
  if (Syscall(SYS_getcpu, Arg(&here), 0, 0) < 0) {
    return -1;
  }
  const int at = static_cast<int>(here);
  return at == two[0] ? two[1] : at == two[1] ? two[0] : -1;
}

}  // namespace

bool MoveTo(pid_t process, int processor) {
  unsigned long mask[kMaskWords] = {};
  const unsigned word = static_cast<unsigned>(processor) / kWordBits;
  mask[word] = 1UL << (static_cast<unsigned>(processor) % kWordBits);
  return Syscall(SYS_sched_setaffinity, process, static_cast<long>((word + 1) * sizeof(*mask)),
                 Arg(mask)) >= 0;
}

bool Placement::AreTwo() {
  if (bytes_ == 0) {
    // Ours is what a process inherits.
    bytes_ = Syscall(SYS_sched_getaffinity, 0, sizeof(all_), Arg(all_));
  }
  return bytes_ > 0 && Numbers(all_, bytes_, two_);
}

int Placement::Gather() {
  const int other = AreTwo() ? Other(two_) : -1;
  if (other < 0 || !MoveTo(0, other == two_[0] ? two_[1] : two_[0])) {
    return -1;
  }
  gathered_ = narrowed_ = true;
  return other;
}

void Placement::Release() {
  if (std::exchange(gathered_, false)) {
    // Fails only if all of them were taken from us meanwhile, and then the kernel has already given us others.
    (void)Syscall(SYS_sched_setaffinity, 0, bytes_, Arg(all_));
  }
}

void Placement::SendAway(pid_t process) {
  if (const int other = AreTwo() ? Other(two_) : -1; other >= 0) {
    narrowed_ = MoveTo(process, other) || narrowed_;
  }
}

Status Placement::Restore(pid_t process) {
  if (!narrowed_) {
    return {};
  }
  const long answer = Syscall(SYS_sched_setaffinity, process, bytes_, Arg(all_));
  if (answer < 0) {
    return sys::ErrnoError("isolation.processors",
                           "cannot give the boundary all its processors back", answer);
  }
  narrowed_ = false;
  return {};
}

}  // namespace coffer::isolation
