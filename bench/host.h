// SPDX-License-Identifier: Apache-2.0
//
// The machine in words that mean something elsewhere: no host name, no path, no address.
#pragma once

#include "results.h"

namespace coffer::bench {

// Processor time of all cores since the machine started, in ticks.
struct CpuTime {
  double total = 0;
  double idle = 0;
  double stolen = 0;  // we would have run, and the hypervisor let another machine run instead
};
CpuTime ReadCpuTime();

// The share of the time we wanted that was stolen.
double StolenShare(const CpuTime& before, const CpuTime& after);

Host DescribeHost();

}  // namespace coffer::bench
