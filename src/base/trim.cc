// SPDX-License-Identifier: Apache-2.0
#include "base/trim.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <cstdint>

#include "base/sys.h"

extern "C" {
extern char __executable_start;  // the linker's names
extern char etext;
}

namespace coffer {
namespace {

constexpr uintptr_t kPage =
    4096;  // on a kernel with larger pages the call is refused, and nothing is lost

}  // namespace

void TrimPages(char* start, char* end) {
  const uintptr_t first = (reinterpret_cast<uintptr_t>(start) + kPage - 1) & ~(kPage - 1);
  const uintptr_t last = reinterpret_cast<uintptr_t>(end) & ~(kPage - 1);
  if (first < last) {
    // Straight to the kernel and unchecked: this is thrift, not safety, so it is not a call that may be made to fail.
    (void)raw::Syscall(SYS_madvise, static_cast<long>(first), static_cast<long>(last - first),
                       MADV_DONTNEED);
  }
}

void TrimText() { TrimPages(&__executable_start, &etext); }

}  // namespace coffer
