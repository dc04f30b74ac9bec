// SPDX-License-Identifier: Apache-2.0
#include "isolation/machine_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>

#include "base/clock.h"
#include "base/sys.h"

namespace coffer::isolation {
namespace {

constexpr size_t kMostCpuText =
    16384;  // several times one CPU's; the rest of the file is not generated

// Each CPU with files of its own makes every start some microseconds longer.
constexpr size_t kMostCpusWithTopology = 16;

// "0-3,7", as the kernel writes sets of CPUs.
std::string CpuList(const std::vector<unsigned>& cpus) {
  std::string list;
  for (size_t i = 0; i < cpus.size();) {
    size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) {
      ++last;
    }
    list += list.empty() ? "" : ",";
    list += last == i ? fmt::format("{}", cpus[i]) : fmt::format("{}-{}", cpus[i], cpus[last]);
    i = last + 1;
  }
  return list + "\n";
}

// "00000001,00000003": sets of CPUs in hexadecimal, the highest 32 first.
std::string CpuMask(const std::vector<unsigned>& cpus) {
  std::vector<uint32_t> words(cpus.back() / 32 + 1);
  for (const unsigned cpu : cpus) {
    words[cpu / 32] |= uint32_t{1} << cpu % 32;
  }
  std::string mask;
  for (auto word = words.rbegin(); word != words.rend(); ++word) {
    mask += fmt::format("{}{:08x}", mask.empty() ? "" : ",", *word);
  }
  return mask + "\n";
}

// One CPU's text with the numbers of another. What counts cores and threads counts the boundary's.
std::string CpuText(const Machine& machine, unsigned cpu) {
  std::string text;
  std::string_view rest = machine.cpu_model;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end);
    const size_t colon = line.find(':');
    const std::string_view key = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    if (colon == std::string_view::npos) {
      text += line;
    } else if (key == "microcode" || key == "bugs") {
      continue;  // how well the host is patched
    } else if (key == "physical id") {
      text += fmt::format("{}: 0\n", line.substr(0, colon));
    } else if (key == "processor" || key == "core id" || key == "apicid" ||
               key == "initial apicid") {
      text += fmt::format("{}: {}\n", line.substr(0, colon), cpu);
    } else if (key == "siblings" || key == "cpu cores") {
      text += fmt::format("{}: {}\n", line.substr(0, colon), machine.cpus.size());
    } else {
      text += line;
    }
  }
  return text + "\n";
}

std::string CpuInfo(const Machine& machine) {
  std::string text;
  for (const unsigned cpu : machine.cpus) {
    text += CpuText(machine, cpu);
  }
  return text;
}

std::string MemInfo(const Machine& machine) {
  std::string text;
  const uint64_t all = machine.memory / 1024;
  for (const auto& [name, value] : std::initializer_list<std::pair<const char*, uint64_t>>{
           {"MemTotal:", all},   {"MemFree:", all},      {"MemAvailable:", all},
           {"Buffers:", 0},      {"Cached:", 0},         {"SwapCached:", 0},
           {"Active:", 0},       {"Inactive:", 0},       {"Unevictable:", 0},
           {"Mlocked:", 0},      {"SwapTotal:", 0},      {"SwapFree:", 0},
           {"Dirty:", 0},        {"Writeback:", 0},      {"AnonPages:", 0},
           {"Mapped:", 0},       {"Shmem:", 0},          {"KReclaimable:", 0},
           {"Slab:", 0},         {"SReclaimable:", 0},   {"SUnreclaim:", 0},
           {"KernelStack:", 0},  {"PageTables:", 0},     {"CommitLimit:", all},
           {"Committed_AS:", 0}, {"VmallocTotal:", all}, {"VmallocUsed:", 0},
       }) {
    text += fmt::format("{:<15} {:>8} kB\n", name, value);
  }
  return text + "HugePages_Total:       0\nHugePages_Free:        0\nHugepagesize:       2048 kB\n";
}

std::string ProcStat(const Machine& machine) {
  // All time so far was idle: readers divide by the sum.
  std::string text = fmt::format("cpu  0 0 0 {} 0 0 0 0 0 0\n", 100 * machine.cpus.size());
  for (const unsigned cpu : machine.cpus) {
    text += fmt::format("cpu{} 0 0 0 100 0 0 0 0 0 0\n", cpu);
  }
  return text + fmt::format(
                    "intr 0\nctxt 0\nbtime {}\nprocesses 1\nprocs_running 1\nprocs_blocked 0\n"
                    "softirq 0 0 0 0 0 0 0 0 0 0 0\n",
                    machine.began);
}

// Seconds to add so that the clock shows one or two. None may become negative.
long BeginsNow(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec > 1 ? 1 - now.tv_sec : 0;
}

}  // namespace

std::string FirstCpu(std::string_view cpuinfo) {
  const size_t end = cpuinfo.find("\n\n");
  const std::string_view first =
      end == std::string_view::npos ? cpuinfo : cpuinfo.substr(0, end + 1);
  return first.starts_with("processor") ? std::string(first) : "processor\t: 0\n";
}

Machine ReadMachine(uint64_t memory) {
  Machine machine;
  struct sysinfo host{};
  const uint64_t all = ::sysinfo(&host) == 0 ? uint64_t{host.totalram} * host.mem_unit : memory;
  machine.memory = std::min(memory, all);
  machine.began = std::chrono::duration_cast<std::chrono::seconds>(WallTime()).count();
  // As many as the kernel can have: 8,192.
  unsigned long sets[8192 / (8 * sizeof(unsigned long))] = {};
  constexpr unsigned kBits = 8 * sizeof(unsigned long);
  const long size = raw::Syscall(SYS_sched_getaffinity, 0, sizeof(sets), raw::Arg(sets));
  for (unsigned cpu = 0; size > 0 && cpu < 8 * static_cast<unsigned>(size); ++cpu) {
    if ((sets[cpu / kBits] >> (cpu % kBits) & 1) != 0) {
      machine.cpus.push_back(cpu);
    }
  }
  if (machine.cpus.empty()) {
    machine.cpus.push_back(0);
  }
  const Result<UniqueFd> file = sys::Open("/proc/cpuinfo", O_RDONLY);
  std::string text(kMostCpuText, '\0');
  const long got = file.ok() ? raw::Syscall(SYS_read, file->get(), raw::Arg(text.data()),
                                            static_cast<long>(text.size()))
                             : 0;
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  machine.cpu_model = FirstCpu(text);
  return machine;
}

std::string ClockOffsets() {
  utsname kernel{};
  char* minor = nullptr;
  if (::uname(&kernel) != 0) {
    return "";
  }
  const long major = std::strtol(kernel.release, &minor, 10);
  if (major < 6 || (major == 6 && std::strtol(minor + 1, nullptr, 10) < 3)) {
    return "";
  }
  return fmt::format("monotonic {} 0\nboottime {} 0\n", BeginsNow(CLOCK_MONOTONIC),
                     BeginsNow(CLOCK_BOOTTIME));
}

std::vector<PrivateFile> ProcFiles(const Machine& machine) {
  return {
      {"cpuinfo", CpuInfo(machine), 0444}, {"loadavg", "0.00 0.00 0.00 1/1 1\n", 0444},
      {"meminfo", MemInfo(machine), 0444}, {"stat", ProcStat(machine), 0444},
      {"uptime", "1.00 1.00\n", 0444},
  };
}

std::vector<PrivateFile> SysFiles(const Machine& machine) {
  const std::string cpus = "/sys/devices/system/cpu/";
  const unsigned last = machine.cpus.back();
  const std::string possible = last == 0 ? "0\n" : fmt::format("0-{}\n", last);
  std::vector<PrivateFile> files = {
      {cpus + "online", CpuList(machine.cpus), 0444},
      {cpus + "possible", possible, 0444},
      {cpus + "present", possible, 0444},
  };
  if (machine.cpus.size() > kMostCpusWithTopology) {
    return files;  // none: of some CPUs alone, programs would count only those
  }
  // As in /proc/cpuinfo: each CPU is a core, and all are one socket.
  for (const unsigned cpu : machine.cpus) {
    const std::string topology = fmt::format("{}cpu{}/topology/", cpus, cpu);
    files.push_back({topology + "thread_siblings", CpuMask({cpu}), 0444});
    files.push_back({topology + "core_siblings", CpuMask(machine.cpus), 0444});
  }
  return files;
}

}  // namespace coffer::isolation
