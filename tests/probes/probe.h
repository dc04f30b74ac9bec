// SPDX-License-Identifier: Apache-2.0
//
// The probe: one static program with one verb per attack primitive, run outside (control) and inside (attack).
//
// Each verb tries the primitive for real and prints one line per attempt:
//   [label: ]OPEN [detail]             it worked
//   [label: ]REFUSED errno=NAME        the kernel or a filter said no
//   [label: ]REACHED errno=NAME        it failed only because of its arguments: the kernel's own code did run
// A test compares the control with the inside; the program itself judges nothing. It needs no files, no libraries,
// no /proc and no environment, so that its answers depend on the barrier alone. System calls go through syscall()
// with SYS_ names, never numbers.
#pragma once

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <span>

namespace probe {

struct Verb {
  const char* name;
  int (*run)(int argc, char** argv);  // argv[0] is the verb; the result is the exit status
  const char* usage;
};

std::span<const Verb> NamespaceVerbs();
std::span<const Verb> MountVerbs();
std::span<const Verb> KernelVerbs();
std::span<const Verb> FileVerbs();
std::span<const Verb> ProcVerbs();
std::span<const Verb> ProcessVerbs();
std::span<const Verb> IpcVerbs();
std::span<const Verb> NetVerbs();
std::span<const Verb> SocketVerbs();
std::span<const Verb> TerminalVerbs();
std::span<const Verb> ResourceVerbs();
std::span<const Verb> StorageVerbs();
std::span<const Verb> HidingVerbs();
std::span<const Verb> QueueVerbs();
std::span<const Verb> LifeVerbs();
std::span<const Verb> SharedHostVerbs();

// Print one verdict line. `label` may be null. Output is unbuffered: a killed probe loses nothing.
void Open(const char* label, const char* format = nullptr, ...)
    __attribute__((format(printf, 2, 3)));
void Refused(const char* label, int error_number);
void Reached(const char* label, int error_number);
void Say(const char* format, ...) __attribute__((format(printf, 1, 2)));

// OPEN if `result` >= 0, otherwise REFUSED with errno. Returns `result`.
long Verdict(const char* label, long result);
// For calls made with harmless nonsense arguments: EPERM, EACCES and ENOSYS are REFUSED, any other errno is REACHED.
long ReachVerdict(const char* label, long result);

// The system call, errno as usual; pointers and integers alike.
template <typename... Args>
long Call(long number, Args... args) {
  return ::syscall(number, args...);
}

}  // namespace probe
