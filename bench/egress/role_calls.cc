// SPDX-License-Identifier: Apache-2.0
//
// What calls that are open cost the egress role. It is the real role, in a process of its own, confined as the daemon confines it.
// Each call is asked for as a supervisor asks, with a rule that judges requests, and gives it the four listeners of a network
// namespace of its own. What is missing is the boundary around that namespace: a daemon runs 256 calls at the same time.
//
// Usage: bench_egress_role CALLS      prints the bytes of the role's own memory for each, and how many descriptors it has. Needs root.
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "bench/egress/namespace_listeners.h"
#include "call/run/egress_messages.h"
#include "call/run/egress_process.h"
#include "daemon/call_egress_role.h"

namespace {

using namespace coffer;

[[noreturn]] void Fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

// What the role shares with the program's file costs once, and does not count.
uint64_t OwnMemory(pid_t role) {
  std::ifstream rollup("/proc/" + std::to_string(role) + "/smaps_rollup");
  uint64_t bytes = 0;
  for (std::string line; std::getline(rollup, line);) {
    if (line.starts_with("Private_Dirty:") || line.starts_with("Private_Clean:")) {
      bytes += 1024 * std::strtoull(line.c_str() + line.find(':') + 1, nullptr, 10);
    }
  }
  return bytes;
}

long Descriptors(pid_t role) {
  const std::filesystem::directory_iterator list("/proc/" + std::to_string(role) + "/fd");
  return std::distance(begin(list), end(list));
}

call::EgressProcess OpenCall(int door) {
  call::EgressOrder order;
  order.grants.allow = {"GET https://bench.test/**"};
  Result<call::EgressProcess> process = call::EgressProcess::Ask(door, order);
  if (!process.ok() || !process->AwaitAuthority().ok() || !process->AwaitReady().ok()) {
    Fail("the role takes no call");
  }
  if (!process->GiveListeners(bench::MakeNetworkListeners()).ok()) {
    Fail("listeners");
  }
  return std::move(process).value();
}

}  // namespace

int main(int argc, char** argv) {
  const long calls = argc == 2 ? std::atol(argv[1]) : 0;
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max =
      std::max<rlim_t>(files.rlim_max, 16 * static_cast<rlim_t>(calls));
  int ends[2] = {-1, -1};
  if (calls <= 0 || ::setrlimit(RLIMIT_NOFILE, &files) != 0 ||
      ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    Fail("usage: bench_egress_role CALLS, as root");
  }
  const pid_t role = ::fork();
  if (role == 0) {
    ::close(ends[0]);
    daemon::RunCallEgress(ends[1]);
  }
  ::close(ends[1]);
  // The first ones load what every later one uses.
  std::vector<call::EgressProcess> open;
  constexpr long kWarm = 8;
  for (long i = 0; i < kWarm; ++i) {
    open.push_back(OpenCall(ends[0]));
  }
  ::usleep(200000);
  const uint64_t before = OwnMemory(role);
  const long held = Descriptors(role);
  for (long i = 0; i < calls; ++i) {
    open.push_back(OpenCall(ends[0]));
  }
  ::usleep(500000);
  std::printf("%.0f %.1f\n",
              static_cast<double>(OwnMemory(role) - before) / static_cast<double>(calls),
              static_cast<double>(Descriptors(role) - held) / static_cast<double>(calls));
  open.clear();
  ::close(ends[0]);
  ::kill(role, SIGKILL);
  ::waitpid(role, nullptr, 0);
  return 0;
}
