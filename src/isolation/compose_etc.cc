// SPDX-License-Identifier: Apache-2.0
#include "isolation/compose_etc.h"

#include <unistd.h>

#include <algorithm>

#include "isolation/compose_prepared.h"
#include "isolation/etc.h"
#include "isolation/runtime/runtime.h"

namespace coffer::isolation {
namespace {

// The loader searches /lib, /usr/lib and their multiarch directory by itself.
bool NeedsLoaderCache(const RuntimeSet& runtime) {
  return std::any_of(runtime.files.begin(), runtime.files.end(), [](const RuntimeFile& file) {
    const std::string_view path = file.inside;
    const bool library = path.find(".so") != std::string_view::npos;
    const bool usual =
        path.starts_with("/usr/lib/") || path.starts_with("/lib/") || path.starts_with("/lib64/");
    return library && (!usual || std::count(path.begin(), path.end(), '/') > 4);
  });
}

bool HasInterpreter(const RuntimeSet& runtime) {
  return std::any_of(runtime.files.begin(), runtime.files.end(),
                     [](const RuntimeFile& file) { return file.directory; });
}

// Every file costs each call some 10 us; a single program with its libraries finds UTC, and its libraries, without one.
// In a prepared tree they cost nothing.
std::vector<PrivateFile> RuntimeEtc(const RuntimeSet& runtime, bool prepared) {
  std::vector<PrivateFile> files;
  if (prepared || HasInterpreter(runtime)) {
    files.push_back(SyntheticLocaltime());
  }
  if (prepared || HasInterpreter(runtime) || NeedsLoaderCache(runtime)) {
    files.push_back({"/etc/ld.so.cache", MakeLoaderCache(runtime), 0444});
  }
  return files;
}

constexpr const char* kCaBundle = "/etc/ssl/certs/ca-certificates.crt";

// True if the runtime gets the host's certificate bundle.
bool AddCertificates(const RuntimeSet& runtime, BoundaryPlan& plan, bool placed) {
  if (!HasInterpreter(runtime) || ::access(kCaBundle, R_OK) != 0) {
    return false;
  }
  BindMount bind;
  bind.host = bind.at = kCaBundle;
  bind.follow_links = true;
  bind.supervised = plan.own_uid;
  bind.placed = placed;
  plan.call_root.binds.push_back(bind);
  return true;
}

// Paths of the plan's /etc, as the tree that will be /etc has them.
std::string WithoutEtc(const std::string& path) { return path.substr(std::size("/etc") - 1); }

// /dev and /etc as two mounts, before whatever is mounted below them.
void AddPrepared(const RuntimeSet& runtime, std::vector<PrivateFile> files, BoundaryPlan& plan) {
  BindMount devices = PreparedBind("/dev");
  devices.device = true;
  plan.call_root.binds.push_back(std::move(devices));
  plan.call_root.binds.push_back(PreparedBind("/etc"));
  PreparedPlace etc{"/etc", {}};
  for (PrivateFile& file : files) {
    file.at = WithoutEtc(file.at);
    etc.content.files.push_back(std::move(file));
  }
  if (AddCertificates(runtime, plan, /*placed=*/true)) {
    etc.content.dirs = {"/ssl", "/ssl/certs"};
    etc.content.files.push_back({WithoutEtc(kCaBundle), "", 0444});
  }
  plan.places.push_back(std::move(etc));
}

}  // namespace

void AddEtc(const RuntimeSet& runtime, BoundaryPlan& plan, DirectoryList& dirs) {
  std::vector<PrivateFile> files = RuntimeEtc(runtime, plan.prepared);
  if (plan.prepared) {
    for (PrivateFile& file : SyntheticEtc(plan.uid, plan.hostname)) {
      files.push_back(std::move(file));
    }
    AddPrepared(runtime, std::move(files), plan);
    return;
  }
  for (PrivateFile& file : files) {
    plan.call_root.files.push_back(std::move(file));
  }
  if (AddCertificates(runtime, plan, /*placed=*/false)) {
    dirs.AddParentsOf(kCaBundle);
  }
}

}  // namespace coffer::isolation
