// SPDX-License-Identifier: Apache-2.0
#include "call/run/bound_files.h"

#include <fmt/format.h>

#include "base/quantity.h"
#include "base/text.h"

namespace coffer::call {
namespace {

using isolation::HostPath;
using isolation::PathClass;

constexpr size_t kMostEntries = 64;  // then they are counted

std::string ListOf(const std::vector<std::string>& paths) {
  std::string list;
  for (const std::string& path : paths) {
    list += (list.empty() ? "" : ", ") + Printable(path);
  }
  return list;
}

class BoundList {
 public:
  explicit BoundList(std::vector<audit::BoundPath>& entries) : entries_(entries) {}

  void Add(const std::string& path, PathClass path_class, isolation::BindReason why) {
    if (path_class == PathClass::kSystem && why != isolation::BindReason::kMount) {
      ++system_;
    } else if (entries_.size() < kMostEntries) {
      entries_.push_back({path, std::string(isolation::PathClassName(path_class)),
                          std::string(isolation::BindReasonName(why)), 1});
    } else {
      ++more_;
    }
  }

  void Finish() {
    if (more_ > 0) {
      entries_.push_back({"further files", "caller", "runtime", more_});
    }
    if (system_ > 0) {
      entries_.push_back({"files of the system", "system", "runtime", system_});
    }
  }

 private:
  std::vector<audit::BoundPath>& entries_;
  uint64_t system_ = 0;
  uint64_t more_ = 0;
};

}  // namespace

void DescribeBound(const RunRequest& request, const Prepared& prepared, audit::Receipt& receipt) {
  receipt.bound.clear();
  BoundList bound(receipt.bound);
  std::vector<std::string> changes;
  std::vector<std::string> reads;
  for (const isolation::OpenedMount& mount : prepared.mounts) {
    if (mount.within) {
      continue;
    }
    bound.Add(mount.path.path, mount.path.path_class, mount.path.reason);
    (mount.access == policy::Access::kWrite ? changes : reads).push_back(mount.path.path);
  }
  for (const std::string& input : request.envelope.inputs) {
    bound.Add(input, PathClass::kCaller, isolation::BindReason::kInput);
  }
  if (request.script) {
    bound.Add(request.command.front(), PathClass::kCaller, isolation::BindReason::kScript);
  }
  bool whole_usr = false;
  for (const HostPath& path : prepared.runtime.paths) {
    if (path.directory && path.path == "/usr") {
      whole_usr = true;
      receipt.bound.push_back({"/usr", std::string(isolation::PathClassName(path.path_class)),
                               std::string(isolation::BindReasonName(path.reason)), 1});
      continue;
    }
    bound.Add(path.path, path.path_class, path.reason);
    if (path.path_class == PathClass::kCaller) {
      reads.push_back(path.path);
    }
  }
  bound.Finish();
  if (whole_usr) {
    reads.emplace_back("/usr");
  }
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
      fmt::format("{}; {}; {}{}; at most {} of memory and {} of CPU",
                  changes.empty() ? "can change nothing on the host"
                                  : "can change files under " + ListOf(changes),
                  reads.empty() ? "can read no host file but its runtime and inputs"
                                : "can read " + ListOf(reads),
                  reaches, reached, FormatSize(limits.memory), FormatDuration(limits.cpu));
}

}  // namespace coffer::call
