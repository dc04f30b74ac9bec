// SPDX-License-Identifier: Apache-2.0
#include "call/request_terms.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/json.h"
#include "base/quantity.h"
#include "base/text.h"
#include "call/run/port_forwarder.h"

namespace coffer::call {
namespace {

using policy::Limits;

struct Duration {
  const char* name;
  Nanos Limits::* place;
};
struct Amount {
  const char* name;
  uint64_t Limits::* place;
  Result<uint64_t> (*parse)(std::string_view);
  bool size;
};

constexpr Duration kDurations[] = {{"cpu", &Limits::cpu}, {"wall", &Limits::wall}};
constexpr Amount kAmounts[] = {{"memory", &Limits::memory, ParseSize, true},
                               {"processes", &Limits::processes, ParseCount, false},
                               {"open_files", &Limits::open_files, ParseCount, false},
                               {"disk", &Limits::disk, ParseSize, true},
                               {"inodes", &Limits::inodes, ParseCount, false},
                               {"io", &Limits::io, ParseSize, true},
                               {"output", &Limits::output, ParseSize, true},
                               {"tmp", &Limits::tmp, ParseSize, true}};

// A number counts as its text: 4 as "4".
std::string TextOf(const Json& value) {
  return value.is_string() ? value.get<std::string>() : PrintJson(value);
}

template <typename T, typename Format>
void Narrow(const char* name, const Result<T>& asked, T& place, Format format,
            std::vector<std::string>& mistakes) {
  if (!asked.ok()) {
    mistakes.push_back(fmt::format("{}: {}", name, asked.error().message));
  } else if (*asked > place) {
    mistakes.push_back(
        fmt::format("{}: {} is more than the tool's {}", name, format(*asked), format(place)));
  } else {
    place = *asked;
  }
}

Status ApplyBackground(const policy::Tool& tool, const ToolRequest& request, RunRequest& run) {
  const std::string& name = tool.manifest.tool.name;
  if (!tool.manifest.background) {
    return Refused("policy.background",
                   fmt::format("{} does not run in the background", Printable(name)),
                   "its manifest allows it with [background] wall = \"8h\"");
  }
  const policy::BackgroundSpec& allowed = *tool.manifest.background;
  if (run.envelope.workspace.empty() && run.project.empty()) {
    return Refused("policy.background", "a process in the background belongs to a session",
                   "begin a session, and start the process in it");
  }
  const std::set<uint16_t> ports(request.ports.begin(), request.ports.end());
  if (ports.size() != request.ports.size() || ports.size() > kMostPorts) {
    return Refused(
        "policy.ports",
        fmt::format("a process is reached on at most {} ports, each named once", kMostPorts));
  }
  if (!policy::AllowsPorts(allowed.ports, request.ports)) {
    std::string ranges;
    for (const policy::PortRange& range : allowed.ports) {
      ranges += fmt::format("{}{}-{}", ranges.empty() ? "" : ", ", range.first, range.last);
    }
    return Refused("policy.ports",
                   fmt::format("{} may be reached on {}", Printable(name),
                               ranges.empty() ? "no port" : "the ports " + ranges),
                   "choose one of them, or allow it with background.ports of the manifest");
  }
  run.background = true;
  run.ports = request.ports;
  run.envelope.limits.wall = allowed.wall;
  run.envelope.limits.cpu = allowed.cpu;
  return {};
}

}  // namespace

Result<Limits> NarrowLimits(const Limits& most, std::string_view asked_json) {
  TRY_ASSIGN(const Json asked, ParseJson(asked_json));
  Limits limits = most;
  std::vector<std::string> mistakes;
  if (!asked.is_object()) {
    return Refused("policy.limits", "limits is not an object",
                   "write {\"memory\": \"64MiB\", \"wall\": \"5s\"}");
  }
  std::vector<std::string> known;
  for (const Duration& one : kDurations) {
    known.emplace_back(one.name);
    if (const auto found = asked.find(one.name); found != asked.end()) {
      Narrow(one.name, ParseDuration(TextOf(*found)), limits.*one.place, FormatDuration, mistakes);
    }
  }
  for (const Amount& one : kAmounts) {
    known.emplace_back(one.name);
    const auto found = asked.find(one.name);
    if (found != asked.end()) {
      const auto format = [&](uint64_t n) { return one.size ? FormatSize(n) : std::to_string(n); };
      Narrow(one.name, one.parse(TextOf(*found)), limits.*one.place, format, mistakes);
    }
  }
  for (const auto& [name, value] : asked.items()) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      mistakes.push_back(fmt::format("{}: there is no such limit; there are {}", Printable(name),
                                     fmt::join(known, ", ")));
    }
  }
  if (!mistakes.empty()) {
    return Refused("policy.limits", fmt::format("{}", fmt::join(mistakes, "; ")),
                   "a call may ask for less than its tool's manifest allows, never for more");
  }
  return limits;
}

Status ApplyTerms(const policy::Tool& tool, const ToolRequest& request, RunRequest& run) {
  if (request.background) {
    TRY(ApplyBackground(tool, request, run));
  }
  if (request.without_network) {
    run.envelope.network.clear();
  }
  if (!request.limits_json.empty()) {
    TRY_ASSIGN(run.envelope.limits, NarrowLimits(run.envelope.limits, request.limits_json));
  }
  return {};
}

}  // namespace coffer::call
