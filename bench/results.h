// SPDX-License-Identifier: Apache-2.0
//
// Results is everything one run measured, before anybody judges it. The report, the plots and the targets are
// functions of this value; the JSON file is its complete form.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace coffer::bench {

inline constexpr const char* kPlain = "plain";
inline constexpr const char* kCoffer = "coffer";
inline constexpr const char* kBubblewrap = "bubblewrap";

struct Host {
  std::string architecture, system, kernel, cgroups, user;
  int cores = 0;
  int memory_gib = 0;
  double busy = 0;    // share of all cores that others used when the run began
  double stolen = 0;  // share of the time wanted during the run that other virtual machines got
};

struct ToolInfo {
  std::string name;     // key in all other parts
  std::string version;  // as the tool says it
  std::string active;   // what it confines in this run
};

// All samples of one tool with one payload, in microseconds.
struct Series {
  std::string tool;
  std::string payload;  // "true" or "python"
  bool spaced = false;
  std::vector<double> micros;
};

struct Throughput {
  std::string tool;
  std::string payload;
  int workers = 0;
  double per_second = 0;
};

// Proportional set size of a tool's processes beside the payload, medians over repetitions. Pages of a program are
// shared by all its processes, so one of several live boundaries costs less than a lonely one.
inline constexpr int kLiveTogether = 8;
struct Memory {
  std::string tool;
  int processes = 0;    // per boundary
  double pss_kb = 0;    // of one among kLiveTogether
  double alone_kb = 0;  // of a single one
};

struct FilterCost {
  double plain_ns = 0;   // one getppid outside
  double inside_ns = 0;  // one getppid inside
  std::optional<double> install_us;
};

struct Steps {
  int calls = 0;
  std::vector<std::pair<std::string, double>> median_us;  // in the order of the receipt
};

struct Results {
  Host host;
  bool short_run = false;
  double gap_ms = 30;
  double seconds = 0;
  std::vector<ToolInfo> tools;
  std::vector<std::string> layers;  // active in the measured boundary, from its receipt
  std::vector<Series> latency;
  std::vector<Throughput> throughput;
  std::vector<Memory> memory;
  std::optional<FilterCost> filter;
  std::optional<Steps> steps;

  const Series* FindSeries(const std::string& tool, const std::string& payload, bool spaced) const;
  const Throughput* FindThroughput(const std::string& tool, const std::string& payload,
                                   int workers) const;
  const Memory* FindMemory(const std::string& tool) const;
  bool HasTool(const std::string& tool) const;
};

// Whether others used the machine enough to distort tails and throughput.
inline bool IsBusy(const Host& host) { return host.busy > 0.15; }
inline bool IsStolenFrom(const Host& host) { return host.stolen > 0.02; }

// One promise of the project and what this run found.
struct Target {
  std::string text;  // "/bin/true, tight: time over plain spawn"
  double limit = 0;  // "at most 5"
  double measured = 0;
  bool at_least = false;  // the limit is a lower one
  std::string unit;       // "x", "kB", "ns", "us"
  bool met() const { return at_least ? measured >= limit : measured <= limit; }
};

// Those targets for which this run has both sides.
std::vector<Target> Judge(const Results& results);

std::string ToJson(const Results& results);

}  // namespace coffer::bench
