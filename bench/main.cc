// SPDX-License-Identifier: Apache-2.0
//
// bench_coffer: measures coffer and its peers side by side and writes results.json, docs/BENCHMARKS.md and plots.
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "coffer_probe.h"
#include "command.h"
#include "host.h"
#include "measure.h"
#include "plots.h"
#include "report.h"
#include "results.h"
#include "tool.h"

namespace coffer::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUsage =
    "usage: bench_coffer [--coffer PATH] [--probe PATH] [--floor PATH] [--short] [--peers-only] "
    "[--json FILE] "
    "[--docs DIR]\n"
    "                    [--rounds N] [--spaced-rounds N]\n"
    "  --coffer PATH    the program to measure (build/coffer)\n"
    "  --probe PATH     bench_probe, for the cost of the system call filter\n"
    "  --floor PATH     bench_floor, for what the kernel alone costs\n"
    "  --short          under a minute; reports ratios, publishes nothing\n"
    "  --peers-only     without coffer\n"
    "  --json FILE      where the results go (build/bench/results.json)\n"
    "  --docs DIR       where BENCHMARKS.md and bench/*.svg go; nothing is published without it\n";

struct Options {
  std::string coffer = "build/coffer";
  std::string probe = "build/bench/bench_probe";
  std::string floor = "build/bench/bench_floor";
  std::string json = "build/bench/results.json";
  std::string docs;
  bool short_run = false;
  bool peers_only = false;
  int rounds = 0;  // 0: by kind of run
  int spaced_rounds = 0;
};

struct Effort {
  int tight, spaced, python_tight, python_spaced, slices, memory, steps, filter;
  double slice_seconds;
};
constexpr Effort kFull = {2000, 500, 300, 120, 6, 7, 200, 15, 1.0};
constexpr Effort kShort = {250, 60, 40, 20, 1, 2, 30, 3, 1.0};

Options ParseOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const auto value = [&]() -> std::string {
      if (i + 1 >= argc) {
        Fail(fmt::format("{} needs a value\n{}", flag, kUsage));
      }
      return argv[++i];
    };
    if (flag == "--coffer") {
      options.coffer = value();
    } else if (flag == "--probe") {
      options.probe = value();
    } else if (flag == "--floor") {
      options.floor = value();
    } else if (flag == "--json") {
      options.json = value();
    } else if (flag == "--docs") {
      options.docs = value();
    } else if (flag == "--rounds") {
      options.rounds = std::atoi(value().c_str());
    } else if (flag == "--spaced-rounds") {
      options.spaced_rounds = std::atoi(value().c_str());
    } else if (flag == "--short") {
      options.short_run = true;
    } else if (flag == "--peers-only") {
      options.peers_only = true;
    } else {
      Fail(fmt::format("unknown flag {}\n{}", flag, kUsage));
    }
  }
  return options;
}

// A directory that anyone may traverse (a peer's mapped root too), removed at the end by the process that made it.
class Scratch {
 public:
  Scratch() {
    char name[] = "/tmp/coffer-bench-XXXXXX";
    if (::mkdtemp(name) == nullptr || ::chmod(name, 0755) != 0) {
      Fail("cannot make a directory in /tmp");
    }
    path_ = name;
  }
  ~Scratch() {
    if (::getpid() == owner_) {  // not in a worker that failed
      std::error_code ignored;
      fs::remove_all(path_, ignored);
    }
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  pid_t owner_ = ::getpid();
};

void WriteText(const fs::path& path, const std::string& text) {
  if (path.has_parent_path()) {
    fs::create_directories(path.parent_path());
  }
  std::ofstream file(path);
  file << text;
  if (!file.flush()) {
    Fail(fmt::format("cannot write {}", path.string()));
  }
}

template <typename T>
void Append(std::vector<T>& all, std::vector<T> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

std::string UsableCoffer(const Options& options) {
  if (options.peers_only) {
    return "";
  }
  std::error_code error;
  const fs::path path = fs::canonical(options.coffer, error);
  if (error) {
    Fail(fmt::format(
        "{} does not exist: run `make build`, or name it with --coffer PATH, or pass --peers-only",
        options.coffer));
  }
  return path.string();
}

void MeasureCoffer(Results& results, const std::string& coffer, const std::string& probe,
                   const Effort& effort) {
  results.steps = MeasureSteps(coffer, effort.steps);
  if (fs::exists(probe)) {
    results.filter = MeasureFilter(coffer, fs::canonical(probe).string(), effort.filter);
    for (const auto& [name, micros] : results.steps->median_us) {
      if (name.find("seccomp") != std::string::npos || name.find("filter") != std::string::npos) {
        results.filter->install_us = results.filter->install_us.value_or(0) + micros;
      }
    }
  } else {
    fmt::print(stderr, "bench: {} does not exist: the cost of the filter is not measured\n", probe);
  }
}

void Publish(const Results& results, const Toolbox& box, const std::string& docs) {
  std::vector<std::string> written;
  const auto plot = [&](const std::string& name, const std::string& text) {
    if (!text.empty()) {
      WriteText(fs::path(docs) / "bench" / name, text);
      written.push_back(name);
    }
  };
  for (const Payload& payload : MeasuredPayloads()) {
    plot(fmt::format("latency-{}.svg", payload.key),
         PlotLatency(results, payload.key, payload.title));
  }
  plot("steps.svg", PlotSteps(results));
  plot("throughput.svg", PlotThroughput(results));
  WriteText(fs::path(docs) / "BENCHMARKS.md", WriteReport(results, box.left_out, written));
}

int Run(const Options& options) {
  const std::string coffer = UsableCoffer(options);
  Effort effort = options.short_run ? kShort : kFull;
  effort.tight = options.rounds > 0 ? options.rounds : effort.tight;
  effort.spaced = options.spaced_rounds > 0 ? options.spaced_rounds : effort.spaced;

  const double begin = NowMicros();
  const CpuTime at_begin = ReadCpuTime();
  const auto say = [&](const std::string& what) {
    fmt::print(stderr, "bench: {:>4.0f} s  {}\n", (NowMicros() - begin) / 1e6, what);
  };
  static const Scratch
      scratch;  // static: Fail() leaves through exit(), and that must remove it too
  std::vector<Payload> payloads = MeasuredPayloads();
  payloads.push_back(SleepingPayload());
  const Toolbox box = FindTools(coffer, options.floor, scratch.path(), payloads);

  Results results;
  results.host = DescribeHost();
  results.short_run = options.short_run;
  for (const Tool& tool : box.tools) {
    results.tools.push_back(tool.info);
  }
  if (IsBusy(results.host)) {
    say(fmt::format("the machine is busy (others use {:.0f}%): do not trust tails, nor throughput",
                    100 * results.host.busy));
  }
  for (const std::string& line : box.left_out) {
    say("left out: " + line);
  }
  bool publishable = !options.docs.empty() && !coffer.empty();
  if (!coffer.empty()) {
    const LayerCheck check = CheckLayers(coffer);
    results.layers = check.active;
    for (const std::string& layer : check.absent) {
      say(fmt::format("layer {} is not active in coffer's boundary: nothing will be published",
                      layer));
      publishable = false;
    }
    if (!check.absent.empty() && !options.docs.empty()) {
      Fail(
          "coffer must run with every layer to be compared; see `coffer doctor`, or measure "
          "without --docs");
    }
  }
  for (const Payload& payload : MeasuredPayloads()) {
    const bool python = payload.key == "python";
    say(fmt::format("{}, tight", payload.title));
    Append(results.latency,
           MeasureLatency(box.tools, payload, python ? effort.python_tight : effort.tight, 0));
    say(fmt::format("{}, spaced", payload.title));
    Append(results.latency,
           MeasureLatency(box.tools, payload, python ? effort.python_spaced : effort.spaced,
                          results.gap_ms));
  }
  for (const int workers : {2, 8}) {
    say(fmt::format("{} workers", workers));
    Append(results.throughput, MeasureThroughput(box.tools, MeasuredPayloads()[0], workers,
                                                 effort.slices, effort.slice_seconds));
  }
  if (!options.short_run) {
    for (const int workers : {2, 8}) {
      say(fmt::format("python3, {} workers", workers));
      Append(results.throughput, MeasureThroughput(box.tools, MeasuredPayloads()[1], workers,
                                                   effort.slices / 2, effort.slice_seconds));
    }
  }
  say("memory");
  results.memory = MeasureMemory(box.tools, effort.memory);
  if (!coffer.empty()) {
    say("steps and filter");
    MeasureCoffer(results, coffer, options.probe, effort);
  }
  if (::geteuid() == 0) {
    // crun gives its stdio to the container's root, and with it the host's /dev/null.
    (void)!::chown("/dev/null", 0, 0);
  }
  results.seconds = (NowMicros() - begin) / 1e6;
  results.host.stolen = StolenShare(at_begin, ReadCpuTime());
  if (IsStolenFrom(results.host)) {
    say(
        fmt::format("other virtual machines took {:.0f}% of the processor time: do not trust "
                    "tails, nor throughput",
                    100 * results.host.stolen));
  }
  WriteText(options.json, ToJson(results));
  if (publishable) {
    Publish(results, box, options.docs);
  }
  fmt::print("{}", WriteSummary(results));
  return 0;
}

}  // namespace
}  // namespace coffer::bench

int main(int argc, char** argv) {
  return coffer::bench::Run(coffer::bench::ParseOptions(argc, argv));
}
