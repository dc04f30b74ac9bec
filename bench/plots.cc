// SPDX-License-Identifier: Apache-2.0
#include "plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "stats.h"
#include "svg.h"

namespace coffer::bench {
namespace {

constexpr double kWidth = 880;
constexpr double kLeft = 185;
constexpr size_t kDots = 120;

bool IsMine(const std::string& tool) { return tool == kCoffer; }

std::string Millis(double micros) {
  const double ms = micros / 1e3;
  return ms < 10 ? fmt::format("{:.2f}", ms) : fmt::format("{:.1f}", ms);
}

// A number with as many digits as a reader needs: 0.5, 1, 20.
std::string Short(double value) { return fmt::format("{:g}", value); }

// The longest steps in their order, the rest as one: a bar of thirty slices tells nothing.
std::vector<std::pair<std::string, double>> LongestSteps(const Steps& all, size_t keep) {
  std::vector<double> lengths;
  for (const auto& step : all.median_us) {
    lengths.push_back(step.second);
  }
  std::sort(lengths.rbegin(), lengths.rend());
  const double least = lengths.size() > keep ? lengths[keep - 1] : 0;
  std::vector<std::pair<std::string, double>> longest;
  double rest = 0;
  for (const auto& step : all.median_us) {
    if (step.second >= least && longest.size() < keep) {
      longest.push_back(step);
    } else {
      rest += step.second;
    }
  }
  if (rest > 0) {
    longest.emplace_back("all other steps", rest);
  }
  return longest;
}

void DrawBox(Svg& svg, const LogAxis& axis, double y, const Series& series) {
  const bool mine = IsMine(series.tool);
  const char* soft = mine ? "mine-soft" : "other-soft";
  const char* line = mine ? "mine-line" : "other-line";
  const std::string dot = mine ? "mine dot" : "other dot";
  std::vector<double> sorted = series.micros;
  std::sort(sorted.begin(), sorted.end());
  const double top = axis.At(Quantile(sorted, 0.995));
  const size_t dots = std::min(kDots, sorted.size());
  for (size_t i = 0; i < dots; ++i) {
    // Evenly spaced quantiles, spread over the row by a fixed pattern.
    const double value =
        Quantile(sorted, (static_cast<double>(i) + 0.5) / static_cast<double>(dots));
    const double x = std::min(axis.At(value), top);
    svg.Circle(x, y + 9.0 * (std::fmod(static_cast<double>(i) * 0.618, 1.0) - 0.5), 1.6, dot);
  }
  const Summary s = Summarize(series.micros);
  svg.Line(axis.At(s.p5), y, axis.At(s.p95), y, line);
  svg.Rect(axis.At(s.p25), y - 6, std::max(2.0, axis.At(s.p75) - axis.At(s.p25)), 12, soft, 2);
  svg.Line(axis.At(s.median), y - 9, axis.At(s.median), y + 9, "median");
  svg.Circle(axis.At(s.p99), y, 3.5, mine ? "mine" : "other");
}

}  // namespace

std::string PlotLatency(const Results& results, const std::string& payload,
                        const std::string& title) {
  double low = 1e12;
  double high = 0;
  for (const Series& series : results.latency) {
    if (series.payload == payload && !series.micros.empty()) {
      const Summary s = Summarize(series.micros);
      low = std::min(low, s.min);
      high = std::max(high, s.p99);
    }
  }
  if (high <= 0) {
    return "";
  }
  constexpr double kTop = 72;
  constexpr double kRow = 26;
  constexpr double kGroup = 2 * kRow + 14;
  const double right = kWidth - 130;
  const double bottom = kTop + kGroup * static_cast<double>(results.tools.size());
  Svg svg(kWidth, bottom + 66, fmt::format("Time of one call: {}", title),
          fmt::format("upper row back to back, lower row one call every {:g} ms; lower is better",
                      results.gap_ms));
  const LogAxis axis(low / 1e3, high / 1e3, kLeft, right);
  const LogAxis micro_axis(low, high, kLeft, right);
  for (const double tick : axis.ticks()) {
    svg.Line(axis.At(tick), kTop - 8, axis.At(tick), bottom, "grid");
    svg.Text(axis.At(tick), bottom + 18, Short(tick), "soft mid");
  }
  svg.Line(kLeft, bottom, right, bottom, "axis");
  svg.Text((kLeft + right) / 2, bottom + 38, "milliseconds, logarithmic", "soft mid");
  svg.Text(20, bottom + 56,
           "box: middle half, bar: median, line: 5th to 95th percentile, disc: 99th", "soft");
  svg.Text(kWidth - 20, kTop - 12, "median / p99, ms", "soft end");
  double y = kTop + 14;
  for (const ToolInfo& tool : results.tools) {
    svg.Text(20, y + kRow / 2 + 4, tool.name, IsMine(tool.name) ? "strong" : "");
    for (const bool spaced : {false, true}) {
      const double row = y + (spaced ? kRow : 0);
      svg.Text(kLeft - 10, row + 4, spaced ? "spaced" : "tight", "soft end");
      if (const Series* series = results.FindSeries(tool.name, payload, spaced)) {
        DrawBox(svg, micro_axis, row, *series);
        const Summary s = Summarize(series->micros);
        svg.Text(kWidth - 20, row + 4, fmt::format("{} / {}", Millis(s.median), Millis(s.p99)),
                 IsMine(tool.name) ? "strong end" : "end");
      }
    }
    y += kGroup;
  }
  return svg.Finish();
}

std::string PlotSteps(const Results& results) {
  if (!results.steps.has_value() || results.steps->median_us.empty()) {
    return "";
  }
  constexpr size_t kColours = 12;
  const std::vector<std::pair<std::string, double>> steps =
      LongestSteps(*results.steps, kColours - 1);
  double total = 0;
  for (const auto& step : steps) {
    total += step.second;
  }
  constexpr double kTop = 76;
  constexpr double kBar = 44;
  constexpr size_t kColumns = 3;
  const size_t rows = (steps.size() + kColumns - 1) / kColumns;
  const double height = kTop + kBar + 62 + 22 * static_cast<double>(rows) + 10;
  Svg svg(kWidth, height, "Where the time of one call goes",
          fmt::format("coffer run -- /bin/true, median of {} calls, {:.0f} us in the steps that "
                      "the receipt names",
                      results.steps->calls, total));
  const double left = 20;
  const double right = kWidth - 20;
  const std::vector<double> ticks = LinearTicks(total);
  const auto at = [&](double micros) { return left + (right - left) * micros / ticks.back(); };
  for (const double tick : ticks) {
    svg.Line(at(tick), kTop - 6, at(tick), kTop + kBar + 6, "grid");
    svg.Text(at(tick), kTop + kBar + 22, Short(tick),
             tick == 0              ? "soft"
             : tick == ticks.back() ? "soft end"
                                    : "soft mid");
  }
  svg.Text((left + right) / 2, kTop + kBar + 40, "microseconds", "soft mid");
  double sum = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const std::string css = fmt::format("s{}", i % kColours);
    svg.Rect(at(sum), kTop, std::max(0.6, at(sum + steps[i].second) - at(sum) - 0.6), kBar, css);
    sum += steps[i].second;
    const double x =
        left + (right - left) / static_cast<double>(kColumns) * static_cast<double>(i / rows);
    const double y = kTop + kBar + 62 + 22 * static_cast<double>(i % rows);
    svg.Rect(x, y - 10, 12, 12, css, 2);
    svg.Text(x + 20, y, steps[i].first, "");
    svg.Text(x + (right - left) / kColumns - 24, y, fmt::format("{:.0f} us", steps[i].second),
             "soft end");
  }
  return svg.Finish();
}

std::string PlotThroughput(const Results& results) {
  constexpr std::array<int, 2> kWorkers = {2, 8};
  double most = 0;
  for (const Throughput& entry : results.throughput) {
    if (entry.payload == "true") {
      most = std::max(most, entry.per_second);
    }
  }
  if (most <= 0) {
    return "";
  }
  // Plain spawn would squeeze all others into a corner: the axis ends at the fastest confined tool.
  double fastest = 0;
  for (const Throughput& entry : results.throughput) {
    if (entry.payload == "true" && entry.tool != kPlain) {
      fastest = std::max(fastest, entry.per_second);
    }
  }
  constexpr double kTop = 72;
  constexpr double kRow = 22;
  constexpr double kGroup = 2 * kRow + 14;
  const double right = kWidth - 130;
  size_t groups = 0;
  for (const ToolInfo& tool : results.tools) {
    groups += tool.name == kPlain ? 0 : 1;
  }
  const double bottom = kTop + kGroup * static_cast<double>(groups);
  const Throughput* plain = results.FindThroughput(kPlain, "true", 2);
  Svg svg(kWidth, bottom + 50, "Calls per second, /bin/true",
          fmt::format("{} cores; higher is better; plain spawn without confinement reaches {:.0f} "
                      "with 2 workers",
                      results.host.cores, plain == nullptr ? 0 : plain->per_second));
  const std::vector<double> ticks = LinearTicks(fastest);
  const auto at = [&](double value) { return kLeft + (right - kLeft) * value / ticks.back(); };
  for (const double tick : ticks) {
    svg.Line(at(tick), kTop - 8, at(tick), bottom, "grid");
    svg.Text(at(tick), bottom + 18, Short(tick), "soft mid");
  }
  svg.Text((kLeft + right) / 2, bottom + 38, "calls per second", "soft mid");
  double y = kTop + 10;
  for (const ToolInfo& tool : results.tools) {
    if (tool.name == kPlain) {
      continue;
    }
    svg.Text(20, y + kRow / 2 + 4, tool.name, IsMine(tool.name) ? "strong" : "");
    for (size_t i = 0; i < kWorkers.size(); ++i) {
      const double row = y + kRow * static_cast<double>(i);
      svg.Text(kLeft - 10, row + 4, fmt::format("{} workers", kWorkers[i]), "soft end");
      if (const Throughput* entry = results.FindThroughput(tool.name, "true", kWorkers[i])) {
        const char* css =
            IsMine(tool.name) ? (i == 0 ? "mine" : "mine-soft") : (i == 0 ? "other" : "other-soft");
        svg.Rect(kLeft, row - 8, at(entry->per_second) - kLeft, 16, css, 2);
        svg.Text(at(entry->per_second) + 8, row + 4, fmt::format("{:.0f}", entry->per_second),
                 IsMine(tool.name) ? "strong" : "");
      }
    }
    y += kGroup;
  }
  return svg.Finish();
}

}  // namespace coffer::bench
