// SPDX-License-Identifier: Apache-2.0
#include "isolation/compose_prepared.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <string_view>

namespace coffer::isolation {
namespace {

constexpr std::string_view kUsr = "/usr";

bool BelowUsr(std::string_view path) {
  return path.starts_with(kUsr) && path.size() > kUsr.size() && path[kUsr.size()] == '/';
}

std::string WithoutUsr(const std::string& path) { return path.substr(kUsr.size()); }

// A system file or directory, as all of a runtime's are; the caller's own mounts are opened without following links.
bool OfTheRuntime(const BindMount& bind) { return bind.follow_links && !bind.writable; }

// Remembers which directories of the host everybody may enter.
class Reach {
 public:
  bool OthersEnter(const std::string& directory) {
    if (directory.empty()) {
      return true;  // the root, where everything starts
    }
    if (const auto known = known_.find(directory); known != known_.end()) {
      return known->second;
    }
    struct stat info;
    const bool enter = OthersEnter(directory.substr(0, directory.rfind('/'))) &&
                       ::stat(directory.c_str(), &info) == 0 && (info.st_mode & S_IXOTH) != 0;
    known_.emplace(directory, enter);
    return enter;
  }

 private:
  std::map<std::string, bool> known_;
};

}  // namespace

BindMount PreparedBind(const std::string& at) {
  BindMount bind;
  bind.host = "the prepared " + at;
  bind.at = at;
  bind.directory = true;
  bind.supervised = bind.prepared = true;
  return bind;
}

void PrepareUsr(BoundaryPlan& plan) {
  RootPart& root = plan.call_root;
  const bool any = std::any_of(root.binds.begin(), root.binds.end(),
                               [](const BindMount& bind) { return BelowUsr(bind.at); });
  const bool foreign = std::any_of(root.binds.begin(), root.binds.end(), [](const BindMount& bind) {
    return bind.at == kUsr || (BelowUsr(bind.at) && !OfTheRuntime(bind));
  });
  if (!any || foreign) {
    return;
  }
  PreparedPlace usr{std::string(kUsr), {}};
  for (const std::string& dir : root.dirs) {
    if (BelowUsr(dir)) {
      usr.content.dirs.push_back(WithoutUsr(dir));
    }
  }
  std::erase_if(root.dirs, BelowUsr);
  for (const PrivateLink& link : root.links) {
    if (BelowUsr(link.at)) {
      usr.content.links.push_back({WithoutUsr(link.at), link.target});
    }
  }
  std::erase_if(root.links, [](const PrivateLink& link) { return BelowUsr(link.at); });
  Reach reach;
  for (BindMount& bind : root.binds) {
    if (!BelowUsr(bind.at)) {
      continue;
    }
    bind.placed = true;
    if (!bind.directory) {
      usr.content.files.push_back({WithoutUsr(bind.at), "", 0444});
      if (bind.executable && reach.OthersEnter(bind.host.substr(0, bind.host.rfind('/')))) {
        bind.by_name = true;
        bind.supervised = false;
        root.by_name_in = kUsr;
      }
    }
  }
  // After the trees that are there, before all that is mounted in this one.
  const auto first = std::find_if_not(root.binds.begin(), root.binds.end(),
                                      [](const BindMount& bind) { return bind.prepared; });
  root.binds.insert(first, PreparedBind(usr.at));
  plan.places.push_back(std::move(usr));
}

void MakePrivate(const PreparedPlace& place, BoundaryPlan& plan) {
  RootPart& root = plan.call_root;
  if (root.by_name_in == place.at) {
    root.by_name_in.clear();
    for (BindMount& bind : root.binds) {
      bind.supervised = bind.supervised || bind.by_name;
      bind.by_name = false;
    }
  }
  for (const std::string& dir : place.content.dirs) {
    root.dirs.push_back(place.at + dir);
  }
  for (const PrivateFile& file : place.content.files) {
    root.files.push_back({place.at + file.at, file.content, file.mode});
  }
  for (const PrivateLink& link : place.content.links) {
    root.links.push_back({place.at + link.at, link.target});
  }
  std::erase_if(root.binds,
                [&](const BindMount& bind) { return bind.prepared && bind.at == place.at; });
}

}  // namespace coffer::isolation
