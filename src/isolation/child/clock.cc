// SPDX-License-Identifier: Apache-2.0
#include "isolation/child/clock.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"

namespace coffer::isolation {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr long kCloneNewTime = 0x80;  // CLONE_NEWTIME

}  // namespace

bool MakeClock(const std::string& offsets) {
  if (offsets.empty()) {
    return false;
  }
  // Root's supervisor borrowed another uid before the clone, and so made us not dumpable: then our
  // own files of /proc are not ours to write. Init is dumpable until the call starts anyway.
  Syscall(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);
  const long file =
      Syscall(SYS_openat, AT_FDCWD, Arg("/proc/self/timens_offsets"), O_WRONLY | O_CLOEXEC);
  if (file < 0) {
    return false;  // a kernel without time namespaces, or no /proc
  }
  // The file is of the task: opened before, it speaks of the namespace that the next line makes.
  long answer = Syscall(SYS_unshare, kCloneNewTime);
  if (answer >= 0) {
    answer = Syscall(SYS_write, file, Arg(offsets.c_str()), static_cast<long>(offsets.size()));
  }
  ::close(static_cast<int>(file));
  return answer > 0;
}

}  // namespace coffer::isolation
