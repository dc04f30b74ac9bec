// SPDX-License-Identifier: Apache-2.0
//
// Prints what one getppid costs in nanoseconds: a million calls in chunks, the median chunk counts, so that a
// preempted chunk does not. Static, so that a boundary needs nothing but this file to run it.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

namespace {

constexpr int kChunks = 100;
constexpr int kCallsPerChunk = 10'000;

double NowNanos() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

}  // namespace

int main() {
  std::array<double, kChunks> nanos{};
  for (double& chunk : nanos) {
    const double begin = NowNanos();
    for (int i = 0; i < kCallsPerChunk; ++i) {
      ::syscall(SYS_getppid);
    }
    chunk = (NowNanos() - begin) / kCallsPerChunk;
  }
  std::nth_element(nanos.begin(), nanos.begin() + kChunks / 2, nanos.end());
  std::printf("%.2f\n", nanos[kChunks / 2]);
  return 0;
}
