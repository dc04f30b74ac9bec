// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

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
    if (pid <= 0 || open == std::string::npos || close == std::string::npos || close + 4 > stat.size()) {
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
  Sample sample;
  for (const auto& [pid, process] : processes) {
    if (process.zombie || !Descends(processes, pid, root)) {
      continue;
    }
    if (process.name == "sleep") {
      payload_runs = true;
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

Sample MeasureOnce(const Tool& tool, const Payload& payload) {
  const pid_t root = Start(tool.make(payload, 0));
  std::optional<Sample> sample;
  for (int attempt = 0; attempt < 200 && !sample.has_value(); ++attempt) {
    SleepMicros(10'000);
    sample = ReadSample(root);
  }
  if (sample.has_value()) {
    SleepMicros(50'000);  // what the start itself needed has been given back by now
    sample = ReadSample(root);
  }
  // The payload first: a tool that forwards no signal still ends, and cleans up, when its payload does.
  for (const auto& [pid, process] : ListProcesses()) {
    if (process.name == "sleep" && Descends(ListProcesses(), pid, root)) {
      ::kill(pid, SIGKILL);
    }
  }
  int status = 0;
  ::waitpid(root, &status, 0);
  if (!sample.has_value()) {
    Fail(fmt::format("{}: no sleeping payload within two seconds whose helpers can be read (run as root)",
                     tool.info.name));
  }
  return *sample;
}

}  // namespace

std::vector<Memory> MeasureMemory(const std::vector<Tool>& tools, int repetitions) {
  const Payload payload = SleepingPayload();
  std::vector<Memory> all;
  for (const Tool& tool : tools) {
    if (tool.info.name == kPlain) {
      continue;
    }
    std::vector<double> kb;
    Memory memory{tool.info.name, 0, 0};
    for (int i = 0; i < repetitions; ++i) {
      const Sample sample = MeasureOnce(tool, payload);
      memory.processes = sample.processes;
      kb.push_back(sample.pss_kb);
    }
    memory.pss_kb = Median(kb);
    all.push_back(memory);
  }
  return all;
}

}  // namespace coffer::bench
