// SPDX-License-Identifier: Apache-2.0
//
// Turns a Profile into the BPF program that the kernel runs on every system call.
//
// The program checks the architecture, then finds the number in a binary tree over ranges: neighbours with the same
// verdict are one range, and arguments are looked at only in the leaf that needs them. Another architecture (i386,
// AArch32) and x32 numbers kill the process, since their numbers mean other calls. The tree is what keeps the
// program short, and with it the time to install it.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "isolation/seccomp/profile.h"
#include "isolation/seccomp/syscall_table.h"

namespace coffer::isolation {

// Names that `table` lacks cannot be called and are left out. Fails if a condition names a seventh argument or the
// program would be longer than the kernel takes (4096 instructions).
Result<std::vector<sock_filter>> Compile(const Profile& profile, const SyscallTable& table);

// The SECCOMP_RET_* value of an action.
uint32_t KernelAction(Action action);

}  // namespace coffer::isolation
