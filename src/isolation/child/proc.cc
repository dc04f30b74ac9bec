// SPDX-License-Identifier: Apache-2.0
#include "isolation/child/proc.h"

#include <errno.h>
#include <string.h>
#include <sys/mount.h>

#include "isolation/child/mount_here.h"
#include "isolation/child/root.h"

namespace coffer::isolation {
namespace {

constexpr unsigned long kProcFlags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;

}  // namespace

long MountProc(std::span<const ProcCover> covers, int root, bool clock, uint32_t* item) {
  // hidepid=invisible hides init, which is not dumpable.
  long answer = MountHere("proc", "/proc", kProcFlags, "hidepid=invisible");
  if (answer == -EPERM) {
    return 0;  // the host's own /proc is masked (inside another container): none is better than a wide one
  }
  for (size_t i = 0; i < covers.size() && answer >= 0; ++i) {
    *item = static_cast<uint32_t>(i);
    const ProcCover& cover = covers[i];
    answer = Cover(root, clock && cover.follows_clock ? cover.at.c_str() : cover.from.c_str(),
                   cover.at.c_str());
    if (answer == -ENOENT) {
      answer = 0;  // this kernel has no such file, or the plan no cover for it
    }
  }
  if (answer >= 0) {
    // subset=pid, Linux 5.8.
    answer = MountHere("proc", "/proc", MS_REMOUNT | kProcFlags, "subset=pid,hidepid=invisible");
  }
  return answer < 0 ? answer : 1;
}

void MountCgroup(const char* type) {
  if (type == nullptr) {
    return;
  }
  const bool v2 = strcmp(type, "cgroup2") == 0;
  (void)MountHere(type, v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory", kProcFlags,
                  v2 ? "" : "memory");
}

long MountPts() {
  return MountHere("devpts", "/dev/pts", MS_NOSUID | MS_NOEXEC, "ptmxmode=666,mode=620,max=64");
}

}  // namespace coffer::isolation
