// SPDX-License-Identifier: Apache-2.0
#include "limits/unified.h"

#include <linux/magic.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "base/sys.h"

namespace coffer::limits {

bool UnifiedCgroups() {
  struct statfs info{};
  const long answer = raw::Syscall(SYS_statfs, raw::Arg("/sys/fs/cgroup"), raw::Arg(&info));
  return answer == 0 && info.f_type == CGROUP2_SUPER_MAGIC;
}

}  // namespace coffer::limits
