// SPDX-License-Identifier: Apache-2.0
#include "isolation/compose.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "isolation/compose_etc.h"
#include "isolation/compose_prepared.h"
#include "isolation/directory_list.h"
#include "isolation/etc.h"

namespace coffer::isolation {
namespace {

constexpr std::string_view kOwnPlaces[] = {"/",          "/etc",  "/dev", "/proc", "/tmp",
                                           "/workspace", "/in",   "/usr", "/bin",  "/lib",
                                           "/lib64",     "/sbin", "/sys", "/run"};
// Below these only runtimes are ever shown, so one Landlock rule each is enough.
constexpr std::string_view kSystemTops[] = {"/usr", "/bin", "/sbin", "/lib", "/lib64"};
constexpr uint64_t kTmpInodes = 4096;

bool Inside(std::string_view path, std::string_view tree) {
  return path.size() > tree.size() && path.starts_with(tree) && path[tree.size()] == '/';
}

std::string TopOf(const std::string& path) { return path.substr(0, path.find('/', 1)); }

void AddRuntime(const RuntimeSet& runtime, BoundaryPlan& plan, DirectoryList& dirs) {
  RootPart& root = plan.call_root;
  std::set<std::string> tops;
  for (const RuntimeFile& file : runtime.files) {
    BindMount bind;
    bind.host = file.host;
    bind.at = file.inside;
    bind.directory = file.directory;
    bind.follow_links = true;  // resolved already, and the host's own: one call instead of four
    bind.supervised = plan.own_uid;
    bind.executable =
        true;  // libraries are mapped executable; Landlock decides what execve may run
    root.binds.push_back(bind);
    dirs.AddParentsOf(file.inside);
    if (file.directory) {
      dirs.Add(file.inside);
    }
    const std::string top = TopOf(file.inside);
    if (std::find(std::begin(kSystemTops), std::end(kSystemTops), top) != std::end(kSystemTops)) {
      tops.insert(top);
    } else {
      // A program of the caller's: it alone is executable, not what else may be shown beside it.
      plan.landlock.push_back({file.inside, landlock::kRead | landlock::kExecute});
    }
  }
  for (const auto& [name, target] : runtime.links) {
    root.links.push_back({name, target});
    dirs.AddParentsOf(name);
  }
  for (const std::string& top : tops) {
    plan.landlock.push_back({top, landlock::kRead | landlock::kExecute});
  }
}

void AddDevices(bool tty, RootPart& root, DirectoryList& dirs) {
  for (const char* name : {"null", "zero", "full", "urandom"}) {
    BindMount bind;
    bind.host = std::string("/dev/") + name;
    bind.at = bind.host;
    bind.follow_links = true;
    bind.device = true;
    bind.writable = true;
    root.binds.push_back(bind);
  }
  if (tty) {
    BindMount device;
    device.host = device.at = "/dev/tty";
    device.device = true;
    device.writable = true;
    root.binds.push_back(device);
    dirs.Add("/dev/pts");
    root.links.push_back({"/dev/ptmx", "pts/ptmx"});
  }
  for (const auto& [name, target] :
       {std::pair("random", "urandom"), std::pair("fd", "/proc/self/fd"),
        std::pair("stdin", "/proc/self/fd/0"), std::pair("stdout", "/proc/self/fd/1"),
        std::pair("stderr", "/proc/self/fd/2")}) {
    root.links.push_back({std::string("/dev/") + name, target});
  }
  root.links.push_back({"/dev/shm", "/tmp"});  // one place, one size
}

void AddPrivatePlaces(const policy::Envelope& envelope, RootPart& root, DirectoryList& dirs) {
  const policy::Limits& limits = envelope.limits;
  for (const PrivateTmpfs& place : {PrivateTmpfs{"/workspace", limits.disk, limits.inodes, 0755},
                                    PrivateTmpfs{"/tmp", limits.tmp, kTmpInodes, 01777}}) {
    dirs.Add(place.at);
    if (place.at != "/workspace" || envelope.workspace.empty()) {
      root.tmpfs.push_back(place);
    }
  }
  dirs.Add("/proc");
}

// What Landlock grants in every container, whatever the command.
void AddCommonRules(bool tty, bool fresh_workspace, BoundaryPlan& plan) {
  plan.landlock.push_back({"/", landlock::kReadDir});
  uint64_t device_rights = landlock::kRead | landlock::kWriteFile | landlock::kTruncate;
  if (tty) {
    device_rights |= landlock::kIoctlDev;
  }
  plan.landlock.push_back({"/dev", device_rights});
  plan.landlock.push_back({"/tmp", landlock::kRead | landlock::kPrivateChange});
  if (fresh_workspace) {
    plan.landlock.push_back({"/workspace", landlock::kRead | landlock::kPrivateChange});
  }
  for (const char* place : {"/proc", "/etc", "/in"}) {
    plan.landlock.push_back({place, landlock::kRead});
  }
}

// LANG is C.UTF-8; Debian keeps it as files.
void AddLocale(const RuntimeSet& runtime, RootPart& root, bool supervised, DirectoryList& dirs) {
  static constexpr const char* kLocale = "/usr/lib/locale/C.utf8";
  const bool whole_usr = std::any_of(
      runtime.files.begin(), runtime.files.end(),
      [](const RuntimeFile& file) { return file.directory && Inside(kLocale, file.inside); });
  if (runtime.files.size() > 8 && !whole_usr && ::access(kLocale, X_OK) == 0) {
    BindMount bind;
    bind.host = bind.at = kLocale;
    bind.directory = true;
    bind.follow_links = true;
    bind.supervised = supervised;
    root.binds.push_back(bind);
    dirs.AddParentsOf(kLocale);
    dirs.Add(kLocale);
  }
}

// A session's workspace is a directory of the host: nothing is put into it.
void AddInputs(const std::vector<Input>& inputs, bool link, RootPart& root) {
  for (const Input& input : inputs) {
    root.files.push_back({"/in/" + input.name, input.content, 0444});
    if (link) {
      root.links.push_back({"/workspace/" + input.name, "/in/" + input.name});
    }
  }
}

void AddMounts(const std::vector<OpenedMount>& mounts, BoundaryPlan& plan, DirectoryList& dirs) {
  RootPart& root = plan.call_root;
  for (const OpenedMount& mount : mounts) {
    BindMount bind;
    bind.host = mount.path.path;
    bind.at = mount.at;
    bind.directory = mount.path.directory;
    bind.writable = mount.access == policy::Access::kWrite;
    bind.supervised = plan.own_uid;
    bind.expected_dev = mount.path.dev;
    bind.expected_ino = mount.path.ino;
    root.binds.push_back(bind);
    dirs.AddParentsOf(mount.at);
    if (bind.directory) {
      dirs.Add(mount.at);
    }
    plan.landlock.push_back(
        {mount.at, bind.writable ? landlock::kRead | landlock::kChange : landlock::kRead});
    for (const std::string& fifo : mount.fifos) {
      BindMount cover;
      cover.host = "/dev/null";  // on a nodev mount: it cannot be opened
      cover.at = mount.at + "/" + fifo;
      root.binds.push_back(cover);
    }
  }
}

}  // namespace

Status CheckTargets(const std::vector<OpenedMount>& mounts, const RuntimeSet& runtime) {
  for (size_t i = 0; i < mounts.size(); ++i) {
    const std::string& at = mounts[i].at;
    if (mounts[i].workspace) {
      continue;
    }
    if (std::find(std::begin(kOwnPlaces), std::end(kOwnPlaces), at) != std::end(kOwnPlaces) ||
        Inside(at, "/dev") || Inside(at, "/proc") || Inside(at, "/etc") || Inside(at, "/sys") ||
        Inside(at, "/in")) {
      return Refused("policy.mount.target",
                     fmt::format("{} cannot be a mount target: Cofferdam makes it itself", at),
                     "choose another place, such as /data");
    }
    for (const RuntimeFile& file : runtime.files) {
      if (at == file.inside || Inside(file.inside, at) ||
          (file.directory && Inside(at, file.inside))) {
        return Refused(
            "policy.mount.target",
            fmt::format("a mount at {} would hide {}, which the runtime needs", at, file.inside),
            "choose another place, such as /data");
      }
    }
    for (const auto& [name, target] : runtime.links) {
      if (at == name || Inside(at, name)) {
        return Refused(
            "policy.mount.target",
            fmt::format("{} is a link to {} inside, not a place for a mount", name, target),
            "choose another place, such as /data");
      }
    }
    for (size_t j = 0; j < i; ++j) {
      const std::string& other = mounts[j].at;
      if (at == other || Inside(at, other) || Inside(other, at)) {
        return Refused("policy.mount.overlap",
                       fmt::format("the mount targets {} and {} overlap", other, at),
                       "give each mount a place of its own");
      }
    }
  }
  return {};
}

BoundaryPlan BeginContainer(const policy::Envelope& envelope, bool privileged, bool prepared) {
  BoundaryPlan plan;
  plan.level = policy::Level::kContainer;
  plan.uid = envelope.uid;
  plan.own_uid = privileged;
  plan.tty = envelope.tty;
  plan.prepared = prepared && privileged && !envelope.tty;
  plan.landlock_canary = "/.coffer";
  plan.root.files.push_back({plan.landlock_canary, "", 0444});
  DirectoryList dirs;
  dirs.Add("/dev");
  dirs.Add("/etc");
  dirs.Add("/in");
  AddPrivatePlaces(envelope, plan.root, dirs);
  if (!plan.prepared) {
    AddDevices(envelope.tty, plan.root, dirs);
    for (PrivateFile& file : SyntheticEtc(envelope.uid, plan.hostname)) {
      plan.root.files.push_back(std::move(file));
    }
  }
  plan.root.dirs = dirs.list();
  return plan;
}

Status CompleteContainer(const policy::Envelope& envelope, const RuntimeSet& runtime,
                         const std::vector<OpenedMount>& mounts, const std::vector<Input>& inputs,
                         BoundaryPlan& plan) {
  TRY(CheckTargets(mounts, runtime));
  DirectoryList dirs;
  RootPart& root = plan.call_root;
  AddCommonRules(envelope.tty, envelope.workspace.empty(), plan);
  AddEtc(runtime, plan, dirs);
  AddRuntime(runtime, plan, dirs);
  AddLocale(runtime, root, plan.own_uid, dirs);
  AddInputs(inputs, envelope.workspace.empty(), root);
  AddMounts(mounts, plan, dirs);

  // A link inside the runtime (/bin -> usr/bin) stands where a directory would otherwise be made; what the first half
  // made is there.
  root.dirs = dirs.list();
  std::erase_if(root.dirs, [&](const std::string& dir) {
    return std::any_of(root.links.begin(), root.links.end(),
                       [&](const PrivateLink& link) { return link.at == dir; }) ||
           std::find(plan.root.dirs.begin(), plan.root.dirs.end(), dir) != plan.root.dirs.end();
  });
  if (plan.prepared) {
    PrepareUsr(plan);
  }
  if (root.binds.size() > kMaxBinds) {
    return Refused("policy.mount.count", "too many mounts");
  }
  return {};
}

}  // namespace coffer::isolation
