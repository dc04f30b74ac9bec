// SPDX-License-Identifier: Apache-2.0
//
// What a boundary shows of the machine: files of /proc and /sys, with its own limits instead of the host's.
//
// The JVM, Node, Go, glibc, ps, free and lscpu read them to size heaps and pools. Memory is the
// boundary's cap, the CPUs are those it may run on, loads and times of the host are zero. They are
// made once, when the call begins; of the things that change, only the uptime is live
// (child/clock.h). The model of the CPU is the host's: programs choose code by it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "isolation/plan.h"

namespace coffer::isolation {

struct Machine {
  std::vector<unsigned> cpus;  // numbers of those that the boundary may run on, ascending
  uint64_t memory = 0;         // bytes
  std::string cpu_model;       // the text about one CPU in /proc/cpuinfo
  int64_t began = 0;           // seconds since 1970
};

// The machine that a boundary of this process would see. `memory` is its cap; a cap above the
// host's memory promises nothing.
Machine ReadMachine(uint64_t memory);

// The text about the first CPU in /proc/cpuinfo.
std::string FirstCpu(std::string_view cpuinfo);

// What child/clock.h writes for clocks that begin now, or "" if this kernel cannot: before Linux
// 6.3 a child made by vfork may not change its clocks.
std::string ClockOffsets();

// The files that lie over those of /proc, by name below /proc, and those below /sys, by path.
std::vector<PrivateFile> ProcFiles(const Machine& machine);
std::vector<PrivateFile> SysFiles(const Machine& machine);

}  // namespace coffer::isolation
