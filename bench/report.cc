// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include <fmt/format.h>

#include <algorithm>

#include "stats.h"
#include "tool.h"

namespace coffer::bench {
namespace {

std::string Millis(double micros) {
  return micros < 10'000 ? fmt::format("{:.2f}", micros / 1e3)
                         : fmt::format("{:.1f}", micros / 1e3);
}

// "3.2x", or a dash where there is nothing to compare with.
std::string Ratio(double value, double base) {
  return base > 0 ? fmt::format("{:.2f}x", value / base) : "-";
}

double MedianOf(const Results& results, const std::string& tool, const std::string& payload,
                bool spaced) {
  const Series* series = results.FindSeries(tool, payload, spaced);
  return series == nullptr ? 0 : Median(series->micros);
}

std::string Number(double value, const std::string& unit) {
  return unit == "x" ? fmt::format("{:.2f}x", value) : fmt::format("{:.0f}{}", value, unit);
}

std::string TargetTable(const Results& results) {
  std::string out = "| target | limit | measured | |\n|---|---|---|---|\n";
  for (const Target& target : Judge(results)) {
    out += fmt::format(
        "| {} | {} {} | {} | {} |\n", target.text, target.at_least ? "at least" : "at most",
        target.unit == "x" ? fmt::format("{:g}x", target.limit) : Number(target.limit, target.unit),
        Number(target.measured, target.unit), target.met() ? "met" : "**missed**");
  }
  return out;
}

std::string LatencyTable(const Results& results, const std::string& payload, bool spaced) {
  std::string out =
      "| | median ms | p95 ms | p99 ms | over plain | over bubblewrap | calls "
      "|\n|---|---|---|---|---|---|---|\n";
  const double plain = MedianOf(results, kPlain, payload, spaced);
  const double bubblewrap = MedianOf(results, kBubblewrap, payload, spaced);
  for (const ToolInfo& tool : results.tools) {
    const Series* series = results.FindSeries(tool.name, payload, spaced);
    if (series == nullptr) {
      continue;
    }
    const Summary s = Summarize(series->micros);
    out += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", tool.name, Millis(s.median),
                       Millis(s.p95), Millis(s.p99), Ratio(s.median, plain),
                       Ratio(s.median, bubblewrap), s.count);
  }
  return out;
}

std::string ThroughputTable(const Results& results) {
  std::string out =
      "| | payload | workers | calls per second | over plain | over bubblewrap "
      "|\n|---|---|---|---|---|---|\n";
  for (const Throughput& entry : results.throughput) {
    const Throughput* plain = results.FindThroughput(kPlain, entry.payload, entry.workers);
    const Throughput* bubblewrap =
        results.FindThroughput(kBubblewrap, entry.payload, entry.workers);
    out += fmt::format("| {} | {} | {} | {:.0f} | {} | {} |\n", entry.tool, entry.payload,
                       entry.workers, entry.per_second,
                       Ratio(entry.per_second, plain == nullptr ? 0 : plain->per_second),
                       Ratio(entry.per_second, bubblewrap == nullptr ? 0 : bubblewrap->per_second));
  }
  return out;
}

std::string Picture(const std::vector<std::string>& plots, const std::string& file,
                    const std::string& text) {
  const bool there = std::find(plots.begin(), plots.end(), file) != plots.end();
  return there ? fmt::format("![{}](bench/{})\n\n", text, file) : "";
}

std::string StepTable(const Results& results) {
  if (!results.steps.has_value() || results.steps->median_us.empty()) {
    return "This build's receipt names no steps.\n";
  }
  double total = 0;
  for (const auto& step : results.steps->median_us) {
    total += step.second;
  }
  std::string out = "| step | median us | share |\n|---|---|---|\n";
  for (const auto& [name, micros] : results.steps->median_us) {
    out += fmt::format("| {} | {:.0f} | {:.0f}% |\n", name, micros,
                       total > 0 ? 100 * micros / total : 0);
  }
  return out;
}

std::string HostTable(const Results& results) {
  const Host& host = results.host;
  std::string text = fmt::format(
      "{} cores, {}, {} GiB of memory, {}, kernel {}, cgroup {},\nrun as {}. The run took {:.0f} "
      "seconds.\n",
      host.cores, host.architecture, host.memory_gib, host.system, host.kernel, host.cgroups,
      host.user, results.seconds);
  if (IsBusy(host)) {
    text += fmt::format(
        "\n**The machine was busy (others used {:.0f}% of it at the start): run this again on a "
        "quiet "
        "one.**\n",
        100 * host.busy);
  }
  if (IsStolenFrom(host)) {
    text += fmt::format(
        "\n**Other virtual machines took {:.0f}% of the processor time this run wanted: tails and "
        "throughput say\nmore about them than about the tools.**\n",
        100 * host.stolen);
  }
  return text;
}

}  // namespace

std::string WriteReport(const Results& results, const std::vector<std::string>& left_out,
                        const std::vector<std::string>& plots) {
  std::string out = "# Benchmarks\n\n";
  out +=
      "Written by `make bench`; do not edit. Every number is the whole life of one call as its "
      "caller sees it: from\n"
      "before the tool's process is started until after it has been waited for. Trust the ratios: "
      "the tools took turns\n"
      "in one run, in an order shuffled every round. The absolute times hold only on this "
      "machine.\n\n";
  out += "Machine: " + HostTable(results) + "\n";
  out += "## Targets\n\n" + TargetTable(results) + "\n";
  out += "## What each tool does in this run\n\n| | version | active |\n|---|---|---|\n";
  for (const ToolInfo& tool : results.tools) {
    out += fmt::format("| {} | {} | {} |\n", tool.name, tool.version, tool.active);
  }
  if (!results.layers.empty()) {
    out += "\nLayers of the measured coffer boundary, from its receipt:";
    for (const std::string& layer : results.layers) {
      out += (&layer == &results.layers.front() ? " `" : ", `") + layer + "`";
    }
    out += ".\n";
  }
  for (const std::string& line : left_out) {
    out += fmt::format("\nLeft out: {}.\n", line);
  }
  for (const Payload& payload : MeasuredPayloads()) {
    out += fmt::format("\n## `{}`\n\n", payload.title);
    out += Picture(plots, fmt::format("latency-{}.svg", payload.key),
                   fmt::format("Time of one call: {}", payload.title));
    out += "Back to back:\n\n" + LatencyTable(results, payload.key, false) + "\n";
    out += fmt::format("One call every {:g} ms, as in real use:\n\n", results.gap_ms) +
           LatencyTable(results, payload.key, true);
  }
  out += "\n## Throughput\n\n" + Picture(plots, "throughput.svg", "Calls per second") +
         ThroughputTable(results);
  out +=
      "\n## Memory\n\nProportional set size of all processes of the tool beside the payload, while "
      "the payload sleeps.\nPages of the program are shared by all boundaries that are alive.\n\n";
  out += fmt::format("| | processes | kB, a single one | kB, one of {} |\n|---|---|---|---|\n",
                     kLiveTogether);
  for (const Memory& entry : results.memory) {
    out += fmt::format("| {} | {} | {:.0f} | {:.0f} |\n", entry.tool, entry.processes,
                       entry.alone_kb, entry.pss_kb);
  }
  if (results.filter.has_value()) {
    out += fmt::format(
        "\n## System call filter\n\nOne `getppid`: {:.0f} ns outside, {:.0f} ns inside.",
        results.filter->plain_ns, results.filter->inside_ns);
    if (results.filter->install_us.has_value()) {
      out += fmt::format(" Installing the filter takes {:.0f} us.", *results.filter->install_us);
    }
    out += "\n";
  }
  if (results.steps.has_value()) {
    out += "\n## Where the time of one call goes\n\n" +
           Picture(plots, "steps.svg", "Step breakdown") + StepTable(results);
    out +=
        "\nOf init, from `clone` to the end of the payload, in calls that wrote a receipt; the "
        "supervisor's own "
        "work\nand the network namespace are made beside it on another core.\n";
  }
  out +=
      "\n## How to reproduce\n\n```\nmake bench         # about four minutes; writes this page, "
      "docs/bench/ and build/bench/results.json\n"
      "make bench-short   # under a minute; prints ratios, writes only "
      "build/bench/results.json\n```\n\n"
      "Nothing is published unless a receipt says that every layer was active. A call that fails "
      "ends the run. nsjail and\n"
      "minijail are measured too if they are on PATH.\n";
  return out;
}

std::string WriteSummary(const Results& results) {
  std::string out;
  for (const Payload& payload : MeasuredPayloads()) {
    for (const bool spaced : {false, true}) {
      const double plain = MedianOf(results, kPlain, payload.key, spaced);
      for (const ToolInfo& tool : results.tools) {
        if (const Series* series = results.FindSeries(tool.name, payload.key, spaced)) {
          const Summary s = Summarize(series->micros);
          out +=
              fmt::format("{:<8} {:<7} {:<11} median {:>8} p95 {:>8} p99 {:>8} ms  {:>8} plain\n",
                          payload.key, spaced ? "spaced" : "tight", tool.name, Millis(s.median),
                          Millis(s.p95), Millis(s.p99), Ratio(s.median, plain));
        }
      }
    }
  }
  for (const Throughput& entry : results.throughput) {
    out += fmt::format("{:<8} {} workers {:<11} {:.0f} calls/s\n", entry.payload, entry.workers,
                       entry.tool, entry.per_second);
  }
  for (const Memory& entry : results.memory) {
    out += fmt::format("memory   {:<11} {:.0f} kB alone, {:.0f} kB as one of {}\n", entry.tool,
                       entry.alone_kb, entry.pss_kb, kLiveTogether);
  }
  if (results.steps.has_value()) {
    for (const auto& [name, micros] : results.steps->median_us) {
      out += fmt::format("step     {:<28} {:.0f} us\n", name, micros);
    }
  }
  for (const Target& target : Judge(results)) {
    out +=
        fmt::format("{:<7} {}: {} ({} {})\n", target.met() ? "met" : "MISSED", target.text,
                    Number(target.measured, target.unit), target.at_least ? "at least" : "at most",
                    target.unit == "x" ? fmt::format("{:g}x", target.limit)
                                       : Number(target.limit, target.unit));
  }
  return out;
}

}  // namespace coffer::bench
