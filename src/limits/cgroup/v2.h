// SPDX-License-Identifier: Apache-2.0
//
// The control files of cgroup v2. `dir` is a descriptor of a boundary's cgroup directory.
#pragma once

#include <string_view>

#include "base/result.h"
#include "limits/cgroup/host.h"
#include "limits/usage.h"
#include "policy/envelope.h"

namespace coffer::limits {

// memory.max, memory.swap.max 0 (where swap is accounted), memory.oom.group 1 (the boundary dies as one).
Status WriteMemoryCapsV2(int dir, uint64_t bytes);
Status WritePidsCapV2(int dir, uint64_t pids);

void ReadMemoryV2(int dir, uint64_t cap, Usage& usage);
uint64_t ReadHeldMemoryV2(int dir);
void ReadPidsV2(int dir, uint64_t cap, Usage& usage);
void ReadIoV2(int dir, Usage& usage);
Result<Nanos> ReadCpuV2(int dir);
uint64_t ReadOomKillsV2(int dir);

// The sum of rbytes= and wbytes= over all devices of an io.stat file. Pure.
uint64_t ParseIoStat(std::string_view text);

// Makes sure that children of host.v2_dir have their controllers: writes cgroup.subtree_control, after moving this
// process to a leaf where the host demands it. Does nothing where the host needs nothing. The leaf outlives us, because
// we sit in it, and is removed by the next sweep.
Status PrepareV2Parent(const CgroupHost& host, bool io);

}  // namespace coffer::limits
