// SPDX-License-Identifier: Apache-2.0
//
// The CPU time of a process tree, from samples of it.
//
// The kernel's sum is the time of living processes plus that of the children they reaped. A process
// that ignores SIGCHLD makes the kernel forget its children's time. So the last sample of a process
// is kept when it is gone, and if it was running in that sample it is charged one more interval.
// A child that lives for a fraction of an interval is sampled in that fraction of the cases, so on
// average the sampled children pay for the others. That holds only if the program cannot foresee
// the moments of the samples, so the caller takes them at random. The larger of this and the
// kernel's sum counts.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "limits/deadline.h"
#include "limits/proc_tree.h"

namespace coffer::limits {

class TreeCpu {
 public:
  TreeCpu();

  // What the tree has used up to this sample of it. Never less than before.
  Nanos Add(const ProcTree& tree, const std::vector<TreeProcess>& processes);

  // What the living were seen to run, to the nanosecond. The kernel's sums leave out what is less
  // than a tick, in each process: a hundred of them can use a second that does not show there.
  // Never less than before.
  Nanos ran() const { return ran_; }

 private:
  struct Seen {
    uint64_t start = 0;
    uint64_t ticks = 0;
    Nanos ran{0};
    uint64_t sample = 0;
    double share = 0;  // of the CPU that it had when it was last seen running; 0: it was not
  };

  Nanos tick_;
  std::unordered_map<pid_t, Seen> seen_;
  uint64_t sample_ = 0;
  uint64_t seen_ticks_ = 0;
  Nanos sampled_at_;
  Nanos charged_{0};  // for what processes did between their last sample and their end
  Nanos ran_{0};
  unsigned cpus_ = UsableCpus();
};

}  // namespace coffer::limits
