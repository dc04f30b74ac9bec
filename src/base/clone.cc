// SPDX-License-Identifier: Apache-2.0
#include "base/clone.h"

#include <sys/syscall.h>

#include "base/fault.h"

namespace coffer::raw {

// The child has our registers but perhaps another stack, so between the system call and the call of `entry` nothing
// may live in memory: this cannot be said in C++.
long CloneInto(const clone_args& args, void (*entry)(void*), void* given) {
  if (const int injected = fault::Next(SYS_clone3); injected != 0) {
    return -injected;
  }
#if defined(__aarch64__)
  register long x8 asm("x8") = SYS_clone3;
  register long x0 asm("x0") = reinterpret_cast<long>(&args);
  register long x1 asm("x1") = sizeof(args);
  register long x9 asm("x9") = reinterpret_cast<long>(entry);
  register long x10 asm("x10") = reinterpret_cast<long>(given);
  asm volatile(
      "svc 0\n"
      "cbnz x0, 1f\n"
      "mov x29, xzr\n"
      "mov x30, xzr\n"
      "mov x0, x10\n"
      "blr x9\n"
      "brk #1\n"
      "1:"
      : "+r"(x0)
      : "r"(x8), "r"(x1), "r"(x9), "r"(x10)
      : "memory", "cc");
  return x0;
#elif defined(__x86_64__)
  long answer = SYS_clone3;
  register long r8 asm("r8") = reinterpret_cast<long>(entry);
  register long r9 asm("r9") = reinterpret_cast<long>(given);
  asm volatile(
      "syscall\n"
      "test %%rax, %%rax\n"
      "jnz 1f\n"
      "xor %%ebp, %%ebp\n"
      "sub $128, %%rsp\n"  // a copied frame may have data below the stack pointer
      "and $-16, %%rsp\n"
      "mov %%r9, %%rdi\n"
      "call *%%r8\n"
      "ud2\n"
      "1:"
      : "+a"(answer)
      : "D"(&args), "S"(sizeof(args)), "r"(r8), "r"(r9)
      : "rcx", "r11", "memory", "cc");
  return answer;
#else
#error "write the clone of this architecture"
#endif
}

}  // namespace coffer::raw
