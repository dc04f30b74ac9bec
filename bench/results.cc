// SPDX-License-Identifier: Apache-2.0
#include "results.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <tuple>

#include "stats.h"

namespace coffer::bench {
namespace {

using Json = nlohmann::ordered_json;

double MedianOf(const Results& results, const char* tool, const char* payload, bool spaced) {
  const Series* series = results.FindSeries(tool, payload, spaced);
  return series == nullptr ? 0 : Median(series->micros);
}

Json SummaryJson(const Series& series) {
  const Summary s = Summarize(series.micros);
  return {{"tool", series.tool}, {"payload", series.payload}, {"spaced", series.spaced},
          {"count", s.count},    {"min_us", s.min},           {"p5_us", s.p5},
          {"p25_us", s.p25},     {"median_us", s.median},     {"p75_us", s.p75},
          {"p95_us", s.p95},     {"p99_us", s.p99},           {"max_us", s.max}};
}

}  // namespace

const Series* Results::FindSeries(const std::string& tool, const std::string& payload,
                                  bool spaced) const {
  for (const Series& series : latency) {
    if (series.tool == tool && series.payload == payload && series.spaced == spaced &&
        !series.micros.empty()) {
      return &series;
    }
  }
  return nullptr;
}

const Throughput* Results::FindThroughput(const std::string& tool, const std::string& payload,
                                          int workers) const {
  for (const Throughput& entry : throughput) {
    if (entry.tool == tool && entry.payload == payload && entry.workers == workers) {
      return &entry;
    }
  }
  return nullptr;
}

const Memory* Results::FindMemory(const std::string& tool) const {
  for (const Memory& entry : memory) {
    if (entry.tool == tool) {
      return &entry;
    }
  }
  return nullptr;
}

bool Results::HasTool(const std::string& tool) const {
  for (const ToolInfo& info : tools) {
    if (info.name == tool) {
      return true;
    }
  }
  return false;
}

std::vector<Target> Judge(const Results& results) {
  std::vector<Target> targets;
  for (const bool spaced : {false, true}) {
    const char* mode = spaced ? "spaced" : "tight";
    const double coffer = MedianOf(results, kCoffer, "true", spaced);
    const double bubblewrap = MedianOf(results, kBubblewrap, "true", spaced);
    if (coffer > 0 && bubblewrap > 0) {
      targets.push_back({fmt::format("`/bin/true`, {}: median over bubblewrap", mode), 0.85,
                         coffer / bubblewrap, false, "x"});
    }
  }
  if (const Series* series = results.FindSeries(kCoffer, "true", true)) {
    const Summary s = Summarize(series->micros);
    targets.push_back(
        {"`/bin/true`, spaced: p99 over its own median", 2.5, s.p99 / s.median, false, "x"});
  }
  for (const bool spaced : {false, true}) {
    const double coffer = MedianOf(results, kCoffer, "python", spaced);
    const double bubblewrap = MedianOf(results, kBubblewrap, "python", spaced);
    if (coffer > 0 && bubblewrap > 0) {
      targets.push_back({fmt::format("`python3 -c pass`, {}: median over bubblewrap",
                                     spaced ? "spaced" : "tight"),
                         1.0, coffer / bubblewrap, false, "x"});
    }
  }
  for (const auto& [payload, name, least] :
       {std::tuple("true", "/bin/true", 1.0), std::tuple("python", "python3 -c pass", 0.95)}) {
    for (const int workers : {2, 8}) {
      const Throughput* mine = results.FindThroughput(kCoffer, payload, workers);
      const Throughput* theirs = results.FindThroughput(kBubblewrap, payload, workers);
      if (mine != nullptr && theirs != nullptr && theirs->per_second > 0) {
        targets.push_back(
            {fmt::format("`{}`, {} workers: calls per second over bubblewrap", name, workers),
             least, mine->per_second / theirs->per_second, true, "x"});
      }
    }
  }
  if (const Memory* memory = results.FindMemory(kCoffer)) {
    targets.push_back({"memory beside the payload (PSS), a single live boundary", 300,
                       memory->alone_kb, false, " kB"});
    targets.push_back({"memory beside the payload (PSS), one of 8 live boundaries", 300,
                       memory->pss_kb, false, " kB"});
  }
  if (results.filter.has_value()) {
    targets.push_back({"system call filter: added per call", 40,
                       results.filter->inside_ns - results.filter->plain_ns, false, " ns"});
    if (results.filter->install_us.has_value()) {
      targets.push_back(
          {"system call filter: installing it", 100, *results.filter->install_us, false, " us"});
    }
  }
  return targets;
}

std::string ToJson(const Results& results) {
  Json root;
  root["schema"] = 1;
  root["host"] = {{"architecture", results.host.architecture},
                  {"system", results.host.system},
                  {"kernel", results.host.kernel},
                  {"cgroups", results.host.cgroups},
                  {"user", results.host.user},
                  {"cores", results.host.cores},
                  {"memory_gib", results.host.memory_gib},
                  {"busy", results.host.busy},
                  {"stolen", results.host.stolen}};
  root["run"] = {
      {"short", results.short_run}, {"gap_ms", results.gap_ms}, {"seconds", results.seconds}};
  for (const ToolInfo& tool : results.tools) {
    root["tools"].push_back(
        {{"name", tool.name}, {"version", tool.version}, {"active", tool.active}});
  }
  root["layers"] = results.layers;
  for (const Series& series : results.latency) {
    root["latency"].push_back(SummaryJson(series));
  }
  for (const Throughput& entry : results.throughput) {
    root["throughput"].push_back({{"tool", entry.tool},
                                  {"payload", entry.payload},
                                  {"workers", entry.workers},
                                  {"per_second", entry.per_second}});
  }
  for (const Memory& entry : results.memory) {
    root["memory"].push_back(
        {{"tool", entry.tool}, {"processes", entry.processes}, {"pss_kb", entry.pss_kb}});
  }
  if (results.filter.has_value()) {
    root["filter"] = {{"plain_ns", results.filter->plain_ns},
                      {"inside_ns", results.filter->inside_ns}};
    if (results.filter->install_us.has_value()) {
      root["filter"]["install_us"] = *results.filter->install_us;
    }
  }
  if (results.steps.has_value()) {
    Json steps = Json::object();
    for (const auto& [name, micros] : results.steps->median_us) {
      steps[name] = micros;
    }
    root["steps"] = {{"calls", results.steps->calls}, {"median_us", steps}};
  }
  for (const Target& target : Judge(results)) {
    root["targets"].push_back({{"target", target.text},
                               {"limit", target.limit},
                               {"at_least", target.at_least},
                               {"measured", target.measured},
                               {"unit", target.unit},
                               {"met", target.met()}});
  }
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace coffer::bench
