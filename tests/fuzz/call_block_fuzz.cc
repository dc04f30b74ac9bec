// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the call that a prepared boundary is given: a block that is called valid can be walked as init walks it
// without leaving the mapping. The copy has exactly the input's size, so the address sanitizer sees one byte too many.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "isolation/child/report.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using coffer::isolation::CallBlock;
  // operator new aligns for any header; empty inputs still need an address.
  std::unique_ptr<char[]> copy(new char[size]);
  std::memcpy(copy.get(), data, size);
  auto* block = reinterpret_cast<CallBlock*>(copy.get());
  if (size >= sizeof(CallBlock) && (data[0] & 1) != 0) {
    block->magic = coffer::isolation::kCallMagic;  // the fuzzer need not guess it every time
  }
  if (!coffer::isolation::ValidCallBlock(block, size)) {
    return 0;
  }
  const char* const strings = reinterpret_cast<const char*>(block + 1);
  const char* const end = copy.get() + size;
  const char* at = strings;
  for (uint64_t i = 0; i < static_cast<uint64_t>(block->argc) + block->envc; ++i) {
    at += std::strlen(at) + 1;
  }
  if (at > end || block->argc == 0 || block->tty > 1 ||
      strings + block->program + std::strlen(strings + block->program) >= end ||
      strings + block->cwd + std::strlen(strings + block->cwd) >= end) {
    std::abort();
  }
  return 0;
}
