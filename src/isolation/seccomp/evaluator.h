// SPDX-License-Identifier: Apache-2.0
//
// Runs a seccomp program in user space, so that a filter can be tested without a kernel, for any architecture.
//
// It takes what the kernel's own checker takes (kernel/seccomp.c, seccomp_check_filter) and nothing else, so a
// program that runs here to the end is also one that the kernel accepts on the path that was taken.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstdint>
#include <span>

#include "base/result.h"

namespace coffer::isolation {

// The SECCOMP_RET_* value that `program` returns for `data`. An error means the program is not a valid filter.
Result<uint32_t> Evaluate(std::span<const sock_filter> program, const seccomp_data& data);

}  // namespace coffer::isolation
