// SPDX-License-Identifier: Apache-2.0
//
// Reads from an ELF file what decides which other files it needs: its interpreter and its dynamic section.
//
// The file is hostile input. Every offset, size and count is checked against a bound before it is used, the file is
// read with pread and never mapped (a file that shrinks meanwhile is a short read, not SIGBUS), and the work is
// bounded: at most 128 program headers, 4096 dynamic entries and 512 names. What is read says what the file asks for,
// not that it is well-formed: the kernel and the loader decide that again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace coffer::isolation {

struct ElfInfo {
  uint16_t type = 0;        // ET_EXEC or ET_DYN
  uint16_t machine = 0;     // always the native one
  std::string interpreter;  // PT_INTERP; empty: static, or a library
  std::string soname;
  std::string rpath;                // DT_RPATH as it stands, "$ORIGIN/../lib:/opt/lib"
  std::string runpath;              // DT_RUNPATH; where it is present the loader ignores DT_RPATH
  std::vector<std::string> needed;  // DT_NEEDED in order
  bool dynamic = false;             // has a dynamic section
  bool unwinds =
      false;  // names pthread_cancel, pthread_exit or backtrace: libc loads libgcc_s for them
};

// True for a file that starts with the ELF magic.
bool LooksLikeElf(std::string_view head);

enum class ElfDetail : uint8_t {
  kLibrary,
  kProgram
};  // `interpreter` and `unwinds` are read only with kProgram

// kNotExecutable, code "runtime.elf.*", with a message that continues "<file> is ...": "a 32-bit program".
Result<ElfInfo> ReadElf(int fd, ElfDetail detail = ElfDetail::kProgram);

}  // namespace coffer::isolation
