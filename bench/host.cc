// SPDX-License-Identifier: Apache-2.0
#include "host.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "command.h"

namespace coffer::bench {
namespace {

std::string SystemName() {
  std::ifstream file("/etc/os-release");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("PRETTY_NAME=", 0) == 0) {
      std::string name = line.substr(12);
      std::erase(name, '"');
      return name;
    }
  }
  return "Linux";
}

// "6.18" of "6.18.44-something": the suffix names a build, not a behaviour.
std::string KernelSeries(const std::string& release) {
  const size_t first = release.find('.');
  const size_t second =
      first == std::string::npos ? first : release.find_first_not_of("0123456789", first + 1);
  return release.substr(0, second);
}

std::string CgroupLayout() {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::exists("/sys/fs/cgroup/cgroup.controllers", ignored)) {
    return "v2";
  }
  if (fs::exists("/sys/fs/cgroup/unified/cgroup.procs", ignored)) {
    return "v1 (with an empty v2 hierarchy beside it)";
  }
  return fs::exists("/sys/fs/cgroup/memory", ignored) ? "v1" : "none";
}

int MemoryGib() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  double kb = 0;
  while (file >> word) {
    if (word == "MemTotal:") {
      file >> kb;
      break;
    }
  }
  return static_cast<int>(std::lround(kb / (1 << 20)));
}

// How much of all cores others use, over half a second. Load averages still remember the compiler.
double BusyShare() {
  const CpuTime before = ReadCpuTime();
  SleepMicros(500'000);
  const CpuTime after = ReadCpuTime();
  const double total = after.total - before.total;
  return total > 0 ? 1 - (after.idle - before.idle) / total : 0;
}

}  // namespace

// The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal.
CpuTime ReadCpuTime() {
  std::ifstream file("/proc/stat");
  std::string word;
  file >> word;
  CpuTime time;
  double ticks = 0;
  for (int column = 0; column < 8 && file >> ticks; ++column) {
    time.total += ticks;
    time.idle += column == 3 || column == 4 ? ticks : 0;
    time.stolen += column == 7 ? ticks : 0;
  }
  return time;
}

double StolenShare(const CpuTime& before, const CpuTime& after) {
  const double wanted = (after.total - before.total) - (after.idle - before.idle);
  return wanted > 0 ? (after.stolen - before.stolen) / wanted : 0;
}

Host DescribeHost() {
  utsname names{};
  ::uname(&names);
  Host host;
  host.architecture = names.machine;
  host.kernel = KernelSeries(names.release);
  host.system = SystemName();
  host.cgroups = CgroupLayout();
  host.user = ::geteuid() == 0 ? "root" : "an ordinary user";
  host.cores = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  host.memory_gib = MemoryGib();
  host.busy = BusyShare();
  return host;
}

}  // namespace coffer::bench
