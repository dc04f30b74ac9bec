// SPDX-License-Identifier: Apache-2.0
//
// Processes as /proc shows them.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace coffer::bench {

// A line of /proc/PID/status, without its name.
inline std::string StatusOf(pid_t pid, const std::string& name) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":\t")) {
      return line.substr(name.size() + 2);
    }
  }
  return {};
}

inline long ResidentKib(pid_t pid) { return std::atol(StatusOf(pid, "VmRSS").c_str()); }
inline int Threads(pid_t pid) { return std::atoi(StatusOf(pid, "Threads").c_str()); }
inline std::string NameOf(pid_t pid) { return StatusOf(pid, "Name"); }

inline std::vector<pid_t> ChildrenOf(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid > 0 && StatusOf(pid, "PPid") == std::to_string(parent)) {
      children.push_back(pid);
    }
  }
  return children;
}

// User and system time, in seconds.
inline double CpuSeconds(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  std::array<unsigned long, 2> ticks{};
  std::sscanf(text.c_str() + text.rfind(')') + 1,
              " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &ticks[0], &ticks[1]);
  return static_cast<double>(ticks[0] + ticks[1]) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace coffer::bench
