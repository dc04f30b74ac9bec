// SPDX-License-Identifier: Apache-2.0
#include "call/run/bound_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/quantity.h"
#include "base/text.h"

namespace coffer::call {
namespace {

using isolation::BindReason;
using isolation::HostPath;
using isolation::PathClass;

std::string ListOf(const std::vector<std::string>& paths) {
  std::string list;
  for (const std::string& path : paths) {
    list += (list.empty() ? "" : ", ") + Printable(path);
  }
  return list;
}

// One file or directory of the host that the call is shown.
struct Shown {
  std::string_view path;
  PathClass path_class = PathClass::kCaller;
  BindReason why = BindReason::kMount;
  bool directory = false;
  // A mount, an input or the script: the caller asked for it, whosever it is.
  bool named = false;
  bool writable = false;

  bool IsAllOfUsr() const { return directory && path == "/usr"; }
  bool IsOfTheSystem() const { return path_class == PathClass::kSystem && !named && !IsAllOfUsr(); }
  // May be one of many.
  bool IsRuntimeFile() const { return !directory && !named; }
};

std::vector<Shown> WhatIsShown(const Prepared& prepared) {
  std::vector<Shown> shown;
  for (const isolation::OpenedMount& mount : prepared.mounts) {
    if (!mount.within) {
      shown.push_back({mount.path.path, mount.path.path_class, mount.path.reason,
                       mount.path.directory, /*named=*/true,
                       mount.access == policy::Access::kWrite});
    }
  }
  for (const isolation::Input& input : prepared.inputs) {
    shown.push_back({input.host, input.path_class, input.reason, false, /*named=*/true});
  }
  for (const HostPath& path : prepared.runtime.paths) {
    shown.push_back({path.path, path.path_class, path.reason, path.directory});
  }
  // What is the same for nearly every call comes last.
  if (const auto usr = std::find_if(shown.begin(), shown.end(),
                                    [](const Shown& entry) { return entry.IsAllOfUsr(); });
      usr != shown.end()) {
    std::rotate(usr, usr + 1, shown.end());
  }
  return shown;
}

std::vector<audit::BoundPath> BoundPaths(const std::vector<Shown>& shown) {
  std::vector<audit::BoundPath> bound;
  uint64_t system = 0;
  uint64_t files = 0;
  for (const Shown& entry : shown) {
    if (entry.IsOfTheSystem()) {
      ++system;
    } else if (!entry.IsRuntimeFile() || ++files <= kMostRuntimeFiles) {
      bound.push_back({std::string(entry.path),
                       std::string(isolation::PathClassName(entry.path_class)),
                       std::string(isolation::BindReasonName(entry.why)), 1});
    }
  }
  if (files > kMostRuntimeFiles) {
    bound.push_back({"further files", "caller", "runtime", files - kMostRuntimeFiles});
  }
  if (system > 0) {
    bound.push_back({"files of the system", "system", "runtime", system});
  }
  return bound;
}

std::string WhatItReaches(const std::vector<Shown>& shown) {
  std::vector<std::string> changes;
  std::vector<std::string> reads;
  uint64_t files = 0;
  for (const Shown& entry : shown) {
    if (entry.IsOfTheSystem() || (entry.IsRuntimeFile() && ++files > kMostFilesNamed)) {
      continue;
    }
    // Its path is the daemon's own; what the caller knows it by is the session.
    (entry.writable ? changes : reads)
        .emplace_back(entry.why == BindReason::kWorkspace ? "the session's workspace" : entry.path);
  }
  std::string sentence = changes.empty() ? "can change nothing on the host"
                                         : "can change files under " + ListOf(changes);
  sentence +=
      reads.empty() ? "; can read no host file but its runtime" : "; can read " + ListOf(reads);
  if (files > kMostFilesNamed) {
    sentence += fmt::format(" and {} further files of the caller's", files - kMostFilesNamed);
  }
  return sentence;
}

}  // namespace

void DescribeBound(const RunRequest& request, const Prepared& prepared, audit::Receipt& receipt) {
  const std::vector<Shown> shown = WhatIsShown(prepared);
  receipt.bound = BoundPaths(shown);
  std::string reached;
  for (const RunRequest::Publish& port : request.publish) {
    reached += fmt::format(
        "; is reached from this host on {} (port {} inside)",
        port.host == 0 ? "a free port of 127.0.0.1" : fmt::format("127.0.0.1:{}", port.host),
        port.inside);
  }
  const policy::EgressTexts& egress = request.egress;
  std::string reaches = "cannot reach the network";
  if (!egress.empty()) {
    reaches = "can reach " + ListOf(egress.allow);
    if (!egress.addresses.empty()) {
      reaches += ", also at " + ListOf(egress.addresses);
    }
  }
  const policy::Limits& limits = request.envelope.limits;
  receipt.blast_radius =
      fmt::format("{}; {}{}; at most {} of memory and {} of CPU", WhatItReaches(shown), reaches,
                  reached, FormatSize(limits.memory), FormatDuration(limits.cpu));
}

}  // namespace coffer::call
