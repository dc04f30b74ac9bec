// SPDX-License-Identifier: Apache-2.0
//
// mount(2) below the current directory, which is the new root: one call instead of the six of the
// newer interface, and no other process is there to change what a name means.
#pragma once

#include <sys/syscall.h>

#include "base/sys.h"

namespace coffer::isolation {

// `at` is absolute inside. 0 or -errno.
inline long MountHere(const char* type, const char* at, unsigned long flags, const char* options) {
  while (*at == '/') {
    ++at;
  }
  return raw::Syscall(SYS_mount, raw::Arg(type), raw::Arg(at), raw::Arg(type),
                      static_cast<long>(flags), raw::Arg(options));
}

}  // namespace coffer::isolation
