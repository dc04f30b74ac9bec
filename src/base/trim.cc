// SPDX-License-Identifier: Apache-2.0
#include "base/trim.h"

#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cstdint>

#include "base/sys.h"

extern "C" {
extern char __executable_start;  // the linker's name
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

void TrimText() {
  const auto* header = reinterpret_cast<const ElfW(Phdr)*>(::getauxval(AT_PHDR));
  const unsigned long headers = ::getauxval(AT_PHNUM);
  const ElfW(Phdr)* first = nullptr;  // begins at __executable_start, wherever we were loaded
  for (unsigned long i = 0; i < headers; ++i, ++header) {
    if (header->p_type != PT_LOAD) {
      continue;
    }
    first = first == nullptr ? header : first;
    // The text, and the constants that lie behind it; nothing in there was ever written.
    if ((header->p_flags & PF_W) == 0) {
      char* const start = &__executable_start + (header->p_vaddr - first->p_vaddr);
      TrimPages(start, start + header->p_memsz);
    }
  }
}

void TrimStack() {
  // What is below this frame belongs to functions that have returned. A page is left for the one that is about to.
  auto* const here = static_cast<char*>(__builtin_frame_address(0));
  TrimPages(here - (128 << 10), here - kPage);
}

}  // namespace coffer
