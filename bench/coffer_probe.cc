// SPDX-License-Identifier: Apache-2.0
#include "coffer_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "command.h"
#include "policy/layer.h"
#include "stats.h"

namespace coffer::bench {
namespace {

using Json = nlohmann::ordered_json;
using Named = std::vector<std::pair<std::string, double>>;

// Stands only where a boundary can write to a disk, which the measured one cannot.
constexpr policy::Layer kNotNeeded = policy::Layer::kCgroupIo;

Json RunForReceipt(const std::string& coffer) {
  // `-` is standard error, which is a file in memory here: no disk takes part.
  const Captured run =
      RunCaptured({{coffer, "run", "--quiet", "--receipt", "-", "--", "/usr/bin/true"}});
  if (run.exit_code != 0) {
    Fail(fmt::format("coffer run failed with exit code {}:\n{}", run.exit_code, run.err));
  }
  const size_t begin = run.err.find('{');
  const size_t end = run.err.rfind('}');
  Json receipt = begin == std::string::npos
                     ? Json(Json::value_t::discarded)
                     : Json::parse(run.err.substr(begin, end - begin + 1), nullptr, false);
  if (!receipt.is_object()) {
    Fail("coffer wrote no receipt on standard error (--receipt -)");
  }
  return receipt;
}

Named FindSteps(const Json& receipt) {
  for (const char* pointer :
       {"/cost/steps_us", "/cost/steps", "/isolation/steps_us", "/isolation/steps", "/steps_us"}) {
    const Json::json_pointer at{std::string(pointer)};
    if (!receipt.contains(at)) {
      continue;
    }
    Named steps;
    const Json& found = receipt.at(at);
    if (found.is_object()) {
      for (const auto& [name, micros] : found.items()) {
        if (micros.is_number()) {
          steps.emplace_back(name, micros.get<double>());
        }
      }
    } else if (found.is_array()) {
      for (const Json& step : found) {
        if (step.is_object() && step.contains("name") && step.contains("us")) {
          steps.emplace_back(step["name"].get<std::string>(), step["us"].get<double>());
        }
      }
    }
    return steps;
  }
  return {};
}

// A receipt may give the moment at which each step was entered instead of its length; then the numbers never fall. The
// last step has no end of its own and is dropped.
Named ToDurations(Named steps) {
  const bool moments = std::is_sorted(
      steps.begin(), steps.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (!moments || steps.size() < 2) {
    return steps;
  }
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    steps[i].second = steps[i + 1].second - steps[i].second;
  }
  steps.pop_back();
  return steps;
}

double RunProbe(const Command& command) {
  const Captured run = RunCaptured(command);
  const double nanos = std::strtod(run.out.c_str(), nullptr);
  if (run.exit_code != 0 || nanos <= 0) {
    Fail(
        fmt::format("the system call probe failed with exit code {}:\n{}", run.exit_code, run.err));
  }
  return nanos;
}

}  // namespace

LayerCheck CheckLayers(const std::string& coffer) {
  const Json receipt = RunForReceipt(coffer);
  LayerCheck check;
  const Json::json_pointer at("/isolation/layers");
  if (receipt.contains(at) && receipt.at(at).is_array()) {
    for (const Json& layer : receipt.at(at)) {
      check.active.push_back(layer.is_string() ? layer.get<std::string>()
                                               : layer.value("name", ""));
    }
  }
  for (int i = 0; i < policy::kLayerCount; ++i) {
    const auto layer = static_cast<policy::Layer>(i);
    const std::string name(policy::LayerName(layer));
    if (layer != kNotNeeded &&
        std::find(check.active.begin(), check.active.end(), name) == check.active.end()) {
      check.absent.push_back(name);
    }
  }
  const Json::json_pointer missing("/isolation/missing");
  if (receipt.contains(missing) && receipt.at(missing).is_array()) {
    for (const Json& entry : receipt.at(missing)) {
      const std::string name = entry.is_string() ? entry.get<std::string>() : entry.dump();
      if (std::find(check.absent.begin(), check.absent.end(), name) == check.absent.end()) {
        check.absent.push_back(name);
      }
    }
  }
  return check;
}

Steps MeasureSteps(const std::string& coffer, int calls) {
  std::vector<std::pair<std::string, std::vector<double>>> samples;  // in the order of the receipt
  for (int i = 0; i < calls; ++i) {
    for (const auto& [name, micros] : ToDurations(FindSteps(RunForReceipt(coffer)))) {
      auto known = std::find_if(samples.begin(), samples.end(), [&name = name](const auto& sample) {
        return sample.first == name;
      });
      if (known == samples.end()) {
        known = samples.insert(samples.end(), {name, {}});
      }
      known->second.push_back(micros);
    }
  }
  Steps steps;
  steps.calls = calls;
  for (auto& [name, micros] : samples) {
    steps.median_us.emplace_back(name, Median(std::move(micros)));
  }
  return steps;
}

FilterCost MeasureFilter(const std::string& coffer, const std::string& probe, int repetitions) {
  std::vector<double> plain;
  std::vector<double> inside;
  for (int i = 0; i < repetitions; ++i) {
    plain.push_back(RunProbe({{probe}}));
    inside.push_back(RunProbe({{coffer, "run", "--quiet", "--", probe}}));
  }
  return {Median(plain), Median(inside), std::nullopt};
}

}  // namespace coffer::bench
