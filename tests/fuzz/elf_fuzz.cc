// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a program or library: no crash, bounded work, and names that lie inside the file.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "isolation/runtime/elf.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace coffer::isolation;
  static const int file = ::memfd_create("elf", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(size)) != 0 ||
      ::pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) {
    std::abort();
  }
  for (const ElfDetail detail : {ElfDetail::kProgram, ElfDetail::kLibrary}) {
    const auto info = ReadElf(file, detail);
    if (!info.ok()) {
      continue;
    }
    if (info->needed.size() > 512 || info->interpreter.size() > size ||
        info->soname.size() > size || info->rpath.size() > size || info->runpath.size() > size) {
      std::abort();
    }
    for (const std::string& name : info->needed) {
      if (name.size() > size || name.find('\0') != std::string::npos) {
        std::abort();
      }
    }
  }
  return 0;
}
