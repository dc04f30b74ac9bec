// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <fmt/format.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <vector>

#include "measure.h"
#include "stats.h"

namespace coffer::bench {
namespace {

struct Process {
  pid_t parent = 0;
  std::string name;     // as in /proc/PID/stat, without parentheses
  bool zombie = false;  // has no memory any more
};

std::map<pid_t, Process> ListProcesses() {
  std::map<pid_t, Process> processes;
  DIR* dir = ::opendir("/proc");
  if (dir == nullptr) {
    Fail("cannot list /proc");
  }
  while (const dirent* entry = ::readdir(dir)) {
    const auto pid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    std::ifstream file(fmt::format("/proc/{}/stat", pid));
    std::stringstream text;
    text << file.rdbuf();
    const std::string stat = text.str();
    const size_t open = stat.find('(');
    const size_t close = stat.rfind(')');
    if (pid <= 0 || open == std::string::npos || close == std::string::npos ||
        close + 4 > stat.size()) {
      continue;
    }
    // ") S 123": the state, then the parent.
    processes[pid] = {static_cast<pid_t>(std::strtol(stat.c_str() + close + 4, nullptr, 10)),
                      stat.substr(open + 1, close - open - 1), stat[close + 2] == 'Z'};
  }
  ::closedir(dir);
  return processes;
}

bool Descends(const std::map<pid_t, Process>& processes, pid_t pid, pid_t root) {
  for (int depth = 0; depth < 64 && pid > 1; ++depth) {
    if (pid == root) {
      return true;
    }
    const auto found = processes.find(pid);
    if (found == processes.end()) {
      return false;
    }
    pid = found->second.parent;
  }
  return false;
}

std::optional<double> PssKb(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/smaps_rollup", pid));
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("Pss:", 0) == 0) {
      return std::strtod(line.c_str() + 4, nullptr);
    }
  }
  return std::nullopt;
}

struct Sample {
  int processes = 0;
  double pss_kb = 0;
};

// Everything under `root` but the payload itself; nothing while the payload has not started yet, or if a helper cannot
// be read.
std::optional<Sample> ReadSample(pid_t root) {
  const std::map<pid_t, Process> processes = ListProcesses();
  bool payload_runs = false;
  std::vector<pid_t> seen;
  Sample sample;
  for (const auto& [pid, process] : processes) {
    if (process.zombie || !Descends(processes, pid, root)) {
      continue;
    }
    if (process.name == "sleep") {
      payload_runs = true;
      continue;
    }
    // Processes that share their memory would each report all of it.
    const bool counted = std::any_of(seen.begin(), seen.end(), [pid = pid](pid_t other) {
      return ::syscall(SYS_kcmp, pid, other, KCMP_VM, 0, 0) == 0;
    });
    seen.push_back(pid);
    if (counted) {
      ++sample.processes;
      continue;
    }
    const std::optional<double> pss = PssKb(pid);
    if (!pss.has_value()) {
      return std::nullopt;  // it has just ended, or it is not ours to read
    }
    ++sample.processes;
    sample.pss_kb += *pss;
  }
  return payload_runs ? std::optional<Sample>(sample) : std::nullopt;
}

// Kills the payload: a tool that forwards no signal still ends, and cleans up, when its payload does.
void EndPayload(pid_t root) {
  const std::map<pid_t, Process> processes = ListProcesses();
  for (const auto& [pid, process] : processes) {
    if (process.name == "sleep" && Descends(processes, pid, root)) {
      ::kill(pid, SIGKILL);
    }
  }
  int status = 0;
  ::waitpid(root, &status, 0);
}

// Starts `live` of them and gives the mean of one.
Sample MeasureLive(const Tool& tool, const Payload& payload, int live) {
  std::vector<pid_t> roots;
  bool ok = true;
  for (int slot = 0; slot < live; ++slot) {
    roots.push_back(Start(tool.make(payload, slot)));
    std::optional<Sample> started;
    for (int attempt = 0; attempt < 200 && !started.has_value(); ++attempt) {
      SleepMicros(10'000);
      started = ReadSample(roots.back());
    }
    ok = ok && started.has_value();
  }
  SleepMicros(200'000);  // what the start itself needed has been given back by now
  Sample sum;
  for (const pid_t root : roots) {
    const std::optional<Sample> sample = ReadSample(root);
    ok = ok && sample.has_value();
    sum.processes = sample.value_or(Sample{}).processes;
    sum.pss_kb += sample.value_or(Sample{}).pss_kb / live;
  }
  for (const pid_t root : roots) {
    EndPayload(root);
  }
  if (!ok) {
    Fail(fmt::format(
        "{}: no sleeping payload within two seconds whose helpers can be read (run as root)",
        tool.info.name));
  }
  return sum;
}

}  // namespace

std::vector<Memory> MeasureMemory(const std::vector<Tool>& tools, int repetitions) {
  const Payload payload = SleepingPayload();
  std::vector<Memory> all;
  for (const Tool& tool : tools) {
    if (tool.info.name == kPlain) {
      continue;
    }
    std::vector<double> alone;
    std::vector<double> among;
    Memory memory{tool.info.name};
    for (int i = 0; i < repetitions; ++i) {
      const Sample sample = MeasureLive(tool, payload, 1);
      memory.processes = sample.processes;
      alone.push_back(sample.pss_kb);
      among.push_back(MeasureLive(tool, payload, kLiveTogether).pss_kb);
    }
    memory.alone_kb = Median(alone);
    memory.pss_kb = Median(among);
    all.push_back(memory);
  }
  return all;
}

}  // namespace coffer::bench
