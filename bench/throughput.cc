// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <random>

#include "measure.h"

namespace coffer::bench {
namespace {

struct Shared {
  std::atomic<int> ready;
  std::atomic<bool> go;
  std::atomic<long> calls;
};

// One page that the workers and we see.
Shared* MapShared() {
  void* page =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) {
    Fail("cannot map a shared page");
  }
  return new (page) Shared{};
}

[[noreturn]] void Work(Shared& shared, const Command& command, double seconds) {
  ++shared.ready;
  while (!shared.go.load()) {
    ::usleep(100);
  }
  const double end = NowMicros() + seconds * 1e6;
  long calls = 0;
  while (NowMicros() < end) {
    RunTimed(command);  // ends this worker with 1 if the call fails
    ++calls;
  }
  shared.calls += calls;
  ::_exit(0);
}

// Calls per second in one slice. The clock runs until the last worker is done, so calls that overlap the end count
// together with their time.
double RunSlice(const Tool& tool, const Payload& payload, int workers, double seconds) {
  Shared* shared = MapShared();
  std::vector<pid_t> pids;
  for (int slot = 0; slot < workers; ++slot) {
    const Command command = tool.make(payload, slot);
    const pid_t pid = ::fork();
    if (pid < 0) {
      Fail("cannot fork a worker");
    }
    if (pid == 0) {
      Work(*shared, command, seconds);
    }
    pids.push_back(pid);
  }
  while (shared->ready.load() < workers) {
    ::usleep(100);
  }
  const double begin = NowMicros();
  shared->go.store(true);
  bool ok = true;
  for (const pid_t pid : pids) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    ok = ok && status == 0;
  }
  const double elapsed = (NowMicros() - begin) / 1e6;
  const auto calls = static_cast<double>(shared->calls.load());
  ::munmap(shared, sizeof(Shared));
  if (!ok) {
    Fail(fmt::format("a worker of {} failed", tool.info.name));
  }
  return calls / elapsed;
}

}  // namespace

std::vector<Throughput> MeasureThroughput(const std::vector<Tool>& tools, const Payload& payload,
                                          int workers, int slices, double slice_seconds) {
  std::vector<Throughput> all;
  std::vector<size_t> order;
  for (const Tool& tool : tools) {
    order.push_back(order.size());
    all.push_back({tool.info.name, payload.key, workers, 0});
  }
  std::mt19937 shuffle(
      static_cast<unsigned>(workers));  // NOLINT: the same order every time is wanted
  for (int slice = 0; slice < slices; ++slice) {
    std::shuffle(order.begin(), order.end(), shuffle);
    for (const size_t index : order) {
      all[index].per_second += RunSlice(tools[index], payload, workers, slice_seconds) / slices;
    }
  }
  return all;
}

}  // namespace coffer::bench
