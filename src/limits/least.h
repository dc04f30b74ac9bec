// SPDX-License-Identifier: Apache-2.0
//
// The smallest caps with which a call can start at all. Below them nothing is started: the caller hears which value
// works, instead of an out-of-memory kill in the middle of the setup.
//
// Tried, as root and as a user, at both levels: 256 KiB of memory are enough for /bin/true, and exec needs room for the
// arguments twice; three open files are stdin, stdout and stderr, and the loader of shared libraries needs a fourth.
// The other caps let a program start however small they are: a tmpfs has at least one page, and one process is enough.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "policy/envelope.h"

namespace coffer::limits {

inline constexpr uint64_t kLeastOpenFiles = 4;

// 1 MiB, or more where pages are large, and room for the arguments and the environment.
uint64_t LeastMemory(size_t call_bytes);

// Refuses a cap that is too small to start, and names the least. `call_bytes` are those of arguments and environment.
Status CheckLeast(const policy::Limits& caps, size_t call_bytes);

}  // namespace coffer::limits
