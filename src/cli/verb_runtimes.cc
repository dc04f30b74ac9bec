// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/exit_codes.h"
#include "base/json.h"
#include "base/print.h"
#include "base/sys.h"
#include "base/text.h"
#include "cli/verbs.h"
#include "isolation/runtime/describe.h"

namespace coffer::cli {

namespace {

using isolation::RuntimeReport;

constexpr std::string_view kRuntimesUsage =
    "usage: coffer runtimes [--json]\n"
    "\n"
    "Lists the named sets of programs that `coffer run --runtime NAME` makes visible and "
    "executable.\n";

// "53.1 MiB": for reading, not for parsing.
std::string Readable(uint64_t bytes) {
  constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string Where(const RuntimeReport& report) {
  if (report.found) {
    return report.program.empty() ? "/usr" : report.program;
  }
  return report.program.empty() ? fmt::format("missing: apt install {}", report.package)
                                : report.problem;
}

std::string Table(const std::vector<RuntimeReport>& reports) {
  size_t where = std::string_view("PROGRAM").size();
  for (const RuntimeReport& report : reports) {
    where = std::max(where, Where(report).size());
  }
  std::string text = fmt::format("{:<9}  {:<5}  {:<{}}  {:>6}  {:>6}  {:>9}  {}\n", "NAME", "FOUND",
                                 "PROGRAM", where, "MOUNTS", "FILES", "SIZE", "WHAT");
  for (const RuntimeReport& report : reports) {
    text += fmt::format("{:<9}  {:<5}  {:<{}}  {:>6}  {:>6}  {:>9}  {}\n", report.name,
                        report.found ? "yes" : "no", Where(report), where,
                        report.found ? std::to_string(report.entries) : "-",
                        report.files ? std::to_string(*report.files) : "-",
                        report.bytes ? Readable(*report.bytes) : "-", report.summary);
  }
  return text;
}

std::string ReportsAsJson(const std::vector<RuntimeReport>& reports) {
  Json list = Json::array();
  for (const RuntimeReport& report : reports) {
    Json entry = {{"name", report.name}, {"found", report.found}, {"summary", report.summary}};
    entry["program"] = report.program.empty() ? Json(nullptr) : Json(report.program);
    entry["package"] = report.package.empty() ? Json(nullptr) : Json(report.package);
    entry["problem"] = report.problem.empty() ? Json(nullptr) : Json(report.problem);
    entry["mounts"] = report.entries;
    entry["files"] = report.files ? Json(*report.files) : Json(nullptr);
    entry["bytes"] = report.bytes ? Json(*report.bytes) : Json(nullptr);
    list.push_back(std::move(entry));
  }
  return PrintJson(Json{{"runtimes", std::move(list)}}, 2) + "\n";
}

}  // namespace

int RunRuntimesVerb(std::span<const std::string_view> args) {
  bool json = false;
  for (const std::string_view arg : args) {
    if (arg == "--json") {
      json = true;
    } else if (arg == "--help" || arg == "-h") {
      return sys::WriteAll(STDOUT_FILENO, kRuntimesUsage).ok() ? 0 : kExitFailed;
    } else {
      PrintError(Refused("policy.usage",
                         fmt::format("coffer runtimes has no flag {}", Printable(arg)),
                         "coffer runtimes [--json]"));
      return kExitRefused;
    }
  }
  const std::vector<RuntimeReport> reports = isolation::DescribeRuntimes();
  return sys::WriteAll(STDOUT_FILENO, json ? ReportsAsJson(reports) : Table(reports)).ok()
             ? 0
             : kExitFailed;
}

}  // namespace coffer::cli
