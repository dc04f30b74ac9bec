// SPDX-License-Identifier: Apache-2.0
//
// The control files of cgroup v1, one hierarchy at a time. `dir` is the path of a boundary's cgroup in it.
#pragma once

#include <string>

#include "base/result.h"
#include "limits/usage.h"
#include "policy/envelope.h"

namespace coffer::limits {

// memory.limit_in_bytes first, then memory.memsw.limit_in_bytes: the second may never be below the first. Where swap is
// not accounted, memory.swappiness 0 keeps the boundary out of swap instead.
Status WriteMemoryCapsV1(const std::string& dir, uint64_t bytes);
// Buffers of TCP and UDP sockets: v1 counts them apart, and only once they have a limit.
Status WriteSocketCapV1(const std::string& dir, uint64_t bytes);
Status WritePidsCapV1(const std::string& dir, uint64_t pids);

// Each fills its fields of `usage`; a file that is missing leaves 0. `cap` spares reading the event counters as long
// as the peak is so far below it that there can be none.
void ReadMemoryV1(const std::string& dir, uint64_t cap, Usage& usage);
uint64_t ReadHeldMemoryV1(const std::string& dir);
void ReadPidsV1(const std::string& dir, uint64_t cap, Usage& usage);
void ReadIoV1(const std::string& dir, Usage& usage);
Result<Nanos> ReadCpuV1(const std::string& dir);
uint64_t ReadOomKillsV1(const std::string& dir);

// The sum over devices of a blkio.throttle.io_service_bytes file: its last line, "Total N". Pure.
uint64_t ParseBlkioTotal(std::string_view text);

}  // namespace coffer::limits
