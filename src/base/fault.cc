// SPDX-License-Identifier: Apache-2.0
#include "base/fault.h"

#ifdef COFFER_FAULT_INJECTION

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

namespace coffer::fault {
namespace {

struct Shared {
  std::atomic<long> seen;
  long fail_at;
  int with_errno;
};

Shared* g_shared =
    nullptr;  // test builds only: every process of the family must see the same counter

void WriteCount() {
  const char* path = getenv("COFFER_FAULT_COUNT");
  if (path == nullptr || g_shared == nullptr) {
    return;
  }
  if (FILE* file = fopen(path, "we"); file != nullptr) {
    fprintf(file, "%ld\n", g_shared->seen.load());
    fclose(file);
  }
}

}  // namespace

void Arm() {
  const char* at = getenv("COFFER_FAULT_AT");
  if (at == nullptr) {
    return;
  }
  void* page =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) {
    abort();
  }
  auto* shared = static_cast<Shared*>(page);
  shared->fail_at = atol(at);
  const char* number = getenv("COFFER_FAULT_ERRNO");
  shared->with_errno = number != nullptr ? atoi(number) : EPERM;
  g_shared = shared;
  atexit(WriteCount);
}

int Next(long /*number*/) {
  if (g_shared == nullptr) {
    return 0;
  }
  const long mine = g_shared->seen.fetch_add(1) + 1;
  return mine == g_shared->fail_at ? g_shared->with_errno : 0;
}

}  // namespace coffer::fault

#endif
