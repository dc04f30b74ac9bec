// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/exit_codes.h"
#include "base/json.h"
#include "base/print.h"
#include "base/text.h"
#include "call/run/doctor.h"
#include "cli/verbs.h"
#include "isolation/name_redirect.h"
#include "isolation/runtime/describe.h"
#include "isolation/seccomp/waiting_thread.h"
#include "limits/cgroup/tenant_level.h"
#include "policy/manifest/mistake.h"

namespace coffer::cli {
namespace {

// Whether calls of the daemon lie in levels (limits/cgroup/tenant_level.h); if not, why.
struct SharesFinding {
  std::string why, fix;
};

SharesFinding FindShares(const limits::CgroupHost& host) {
  if (!limits::TenantLevelParent(host).empty()) {
    return {};
  }
  const limits::ControllerPlace& cpu = host.at(limits::Controller::kCpu);
  if (cpu.version == limits::CgroupVersion::kV2 && !host.v2_dir.empty()) {
    return {host.v2_dir + " does not distribute the cpu controller",
            "a unit with Delegate=yes, or: echo +cpu > " + host.v2_dir + "/cgroup.subtree_control"};
  }
  return {cpu.why_not.empty() ? "no cpu controller" : cpu.why_not,
          cpu.fix.empty() ? "a cgroup with the cpu controller that this user may write" : cpu.fix};
}

constexpr std::string_view kDoctorUsage =
    R"(What this host can enforce, and how to fix what it cannot.

Usage: coffer doctor [--json] [--sweep]

  --json    the same as one JSON document
  --sweep   first remove cgroups and directories that a killed coffer left behind

Exit status: 0 if the default level (container) can be reached, 1 if not.
)";

Json TextOrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json LevelJson(const call::LevelFinding& level) {
  Json layers = Json::array();
  for (const call::LayerFinding& finding : level.layers) {
    Json entry = {{"layer", policy::LayerName(finding.layer)}, {"available", finding.available}};
    if (!finding.available) {
      entry["why"] = finding.why;
      entry["fix"] = finding.fix.empty() ? Json(nullptr) : Json(finding.fix);
    }
    layers.push_back(std::move(entry));
  }
  return {{"reachable", level.reachable},
          {"error", level.error.empty() ? Json(nullptr) : Json(level.error)},
          {"layers", std::move(layers)}};
}

Json DiagnosisAsJson(const call::Diagnosis& diagnosis, const call::SweepSummary* sweep) {
  Json json;
  json["default_level_reachable"] = diagnosis.trial_ok;
  json["error"] = diagnosis.trial_error.empty() ? Json(nullptr) : Json(diagnosis.trial_error);
  json["kernel"] = diagnosis.host.kernel;
  json["machine"] = diagnosis.host.machine;
  json["root"] = diagnosis.root;
  json["landlock_abi"] = diagnosis.host.landlock_abi;
  json["seccomp"] = {{"filter", diagnosis.host.seccomp}, {"notify", diagnosis.host.seccomp_notify}};
  json["user_namespaces"] = {
      {"usable", diagnosis.host.containers},
      {"cause", diagnosis.host.cause.empty() ? Json(nullptr) : Json(diagnosis.host.cause)},
      {"fix", diagnosis.host.fix.empty() ? Json(nullptr) : Json(diagnosis.host.fix)}};
  const bool duplicates = diagnosis.host.duplicates;
  json["read_only_locks"] = {
      {"refused", duplicates},
      {"cause", TextOrNull(duplicates ? "" : std::string(isolation::kNoDuplicates))},
      {"fix", TextOrNull(duplicates ? "" : std::string(isolation::kNoDuplicatesFix))}};
  json["transparent_egress"] = {
      {"usable", diagnosis.not_transparent.empty()},
      {"ipv6", diagnosis.not_transparent.empty() && diagnosis.ipv4_only.empty()},
      {"cause", TextOrNull(diagnosis.not_transparent + diagnosis.ipv4_only)},
      {"fix", TextOrNull(diagnosis.not_transparent.empty() ? "" : isolation::kNameRedirectFix)}};
  Json controllers = Json::object();
  for (size_t i = 0; i < limits::kControllerCount; ++i) {
    const limits::ControllerPlace& place = diagnosis.cgroups.places[i];
    Json entry = {{"usable", place.usable}};
    if (!place.usable) {
      entry["why"] = place.why_not;
      entry["fix"] = place.fix;
    }
    controllers[std::string(limits::ControllerName(static_cast<limits::Controller>(i)))] =
        std::move(entry);
  }
  json["cgroups"] = {{"layout", limits::CgroupLayoutName(diagnosis.cgroups.layout)},
                     {"controllers", std::move(controllers)}};
  const SharesFinding shares = FindShares(diagnosis.cgroups);
  json["processor_shares"] = {{"kept", shares.why.empty()},
                              {"cause", TextOrNull(shares.why)},
                              {"fix", TextOrNull(shares.fix)}};
  json["levels"] = Json::object();
  for (const call::LevelFinding& level : diagnosis.levels) {
    json["levels"][std::string(policy::LevelName(level.level))] = LevelJson(level);
  }
  Json packages = Json::array();
  for (const isolation::RuntimeReport& report : isolation::DescribeRuntimes()) {
    if (!report.found && !report.package.empty()) {
      packages.push_back({{"runtime", report.name}, {"package", report.package}});
    }
  }
  json["missing_packages"] = std::move(packages);
  json["trial_layers"] = diagnosis.trial_layers;
  if (sweep != nullptr) {
    json["swept"] = {{"cgroups", sweep->cgroups},
                     {"directories", sweep->directories},
                     {"problems", sweep->problems}};
  }
  return json;
}

std::string AsText(const call::Diagnosis& diagnosis, const call::SweepSummary* sweep) {
  std::string text;
  if (sweep != nullptr) {
    text += fmt::format("swept: {} cgroups, {} directories\n", sweep->cgroups, sweep->directories);
    for (const std::string& problem : sweep->problems) {
      text += "  could not: " + problem + "\n";
    }
    text += "\n";
  }
  text += fmt::format("kernel          {} ({}), as {}\n", diagnosis.host.kernel,
                      diagnosis.host.machine, diagnosis.root ? "root" : "an ordinary user");
  text +=
      fmt::format("landlock        {}\n", diagnosis.host.landlock_abi > 0
                                              ? fmt::format("ABI {}", diagnosis.host.landlock_abi)
                                              : std::string("none"));
  text += fmt::format("seccomp         {}\n", !diagnosis.host.seccomp ? "none"
                                              : diagnosis.host.seccomp_notify
                                                  ? "filter, refusals recorded"
                                                  : "filter");
  text += fmt::format("namespaces      {}\n",
                      diagnosis.host.containers ? "usable" : "forbidden: " + diagnosis.host.cause);
  if (!diagnosis.host.fix.empty()) {
    text += fmt::format("                fix: {}\n", diagnosis.host.fix);
  }
  text +=
      fmt::format("locks           {}\n",
                  diagnosis.host.duplicates
                      ? "exclusive ones are refused on what may only be read"
                      : fmt::format("exclusive ones are NOT refused on what may only be read: {}\n"
                                    "                fix: {}",
                                    isolation::kNoDuplicates, isolation::kNoDuplicatesFix));
  text +=
      fmt::format("--allow         {}\n",
                  diagnosis.not_transparent.empty() && diagnosis.ipv4_only.empty() ? "every program"
                  : diagnosis.not_transparent.empty()
                      ? "every program that uses IPv4: " + diagnosis.ipv4_only
                      : "only programs that use a proxy: " + diagnosis.not_transparent);
  if (!diagnosis.not_transparent.empty()) {
    text += fmt::format("                fix: {}\n", isolation::kNameRedirectFix);
  }
  text += fmt::format("cgroups         {}\n", limits::CgroupLayoutName(diagnosis.cgroups.layout));
  const SharesFinding shares = FindShares(diagnosis.cgroups);
  text += shares.why.empty()
              ? "processors      the daemon and each tenant keep a share of them\n"
              : fmt::format(
                    "processors      the daemon and its tenants have NO shares of them: {}\n"
                    "                fix: {}\n",
                    shares.why, shares.fix);
  for (const call::LevelFinding& level : diagnosis.levels) {
    text += fmt::format("\nlevel {}: {}\n", policy::LevelName(level.level),
                        level.reachable ? "yes" : "NO: " + level.error);
    std::string have;
    for (const call::LayerFinding& finding : level.layers) {
      if (finding.available) {
        have += (have.empty() ? "" : " ") + std::string(policy::LayerName(finding.layer));
      }
    }
    text += "  has   " + have + "\n";
    for (const call::LayerFinding& finding : level.layers) {
      if (!finding.available) {
        text += fmt::format("  lacks {:<14} {}\n", policy::LayerName(finding.layer), finding.why);
        if (!finding.fix.empty()) {
          text += fmt::format("        fix: {}\n", finding.fix);
        }
      }
    }
  }
  for (const isolation::RuntimeReport& report : isolation::DescribeRuntimes()) {
    if (!report.found && !report.package.empty()) {
      text += fmt::format("\nruntime {} is not installed; apt-get install {}\n", report.name,
                          report.package);
    }
  }
  text += diagnosis.trial_ok
              ? "\nThe default level works here: a trial call ran in it.\n"
              : "\nThe default level does NOT work here: " + diagnosis.trial_error + "\n";
  return text;
}

}  // namespace

int DoctorVerb(std::span<const std::string_view> words) {
  bool json = false;
  bool sweep = false;
  for (const std::string_view word : words) {
    if (word == "--json") {
      json = true;
    } else if (word == "--sweep") {
      sweep = true;
    } else if (word == "--help" || word == "-h") {
      PrintOut(kDoctorUsage);
      return 0;
    } else {
      const std::string_view nearest = policy::NearestWord(word, {"--json", "--sweep"});
      PrintError(Refused("policy.usage", "coffer doctor does not know " + Printable(word),
                         nearest.empty() ? "coffer doctor [--json] [--sweep]"
                                         : fmt::format("did you mean {}?", nearest)));
      return kExitRefused;
    }
  }
  call::SweepSummary swept;
  if (sweep) {
    swept = call::SweepAll();
  }
  const call::Diagnosis diagnosis = call::Diagnose();
  const call::SweepSummary* summary = sweep ? &swept : nullptr;
  PrintOut(json ? PrintJson(DiagnosisAsJson(diagnosis, summary), 2) + "\n"
                : AsText(diagnosis, summary));
  return diagnosis.trial_ok ? 0 : 1;
}

}  // namespace coffer::cli
