// SPDX-License-Identifier: Apache-2.0
#include "isolation/compose.h"

#include <fmt/format.h>
#include <limits.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <set>

#include "base/path_words.h"
#include "base/split.h"
#include "isolation/compose_etc.h"
#include "isolation/compose_overlay.h"
#include "isolation/directory_list.h"
#include "isolation/etc.h"
#include "isolation/machine_files.h"
#include "policy/envelope.h"

namespace coffer::isolation {
namespace {

constexpr std::string_view kBoundaryPlaces[] = {"/",          "/etc",  "/dev", "/proc", "/tmp",
                                                "/workspace", "/in",   "/usr", "/bin",  "/lib",
                                                "/lib64",     "/sbin", "/sys", "/run"};
// Below these only runtimes are ever shown, so one Landlock rule each is enough.
constexpr std::string_view kSystemTops[] = {"/usr", "/bin", "/sbin", "/lib", "/lib64"};
constexpr uint64_t kTmpInodes = 4096;
const std::string kOwnDirectory = "/.coffer";

bool Inside(std::string_view path, std::string_view tree) {
  return path.size() > tree.size() && path.starts_with(tree) && path[tree.size()] == '/';
}

std::string TopOf(const std::string& path) { return path.substr(0, path.find('/', 1)); }

// A mount of exactly the examined file: by its descriptor, or compared with it.
BindMount BindOf(const HostPath& path, std::string at, bool supervised) {
  BindMount bind;
  bind.host = path.path;
  bind.at = std::move(at);
  bind.directory = path.directory;
  bind.supervised = supervised;
  bind.source = path.fd.get();
  bind.expected_dev = path.dev;
  bind.expected_ino = path.ino;
  return bind;
}

BindMount DeviceBind(const char* host, unsigned number_major, unsigned number_minor) {
  BindMount bind;
  bind.host = bind.at = host;
  bind.device = makedev(number_major, number_minor);
  bind.usable_device = bind.writable = true;
  return bind;
}

// /dev/null without its mount's permission to be a device: it covers a fifo, and cannot be opened.
// Behind an overlay it is another inode, with nothing of the host at its other end.
void CoverFifos(const std::string& directory, const std::vector<CoveredFile>& fifos, bool overlay,
                RootPart& root) {
  for (const CoveredFile& fifo : fifos) {
    BindMount cover = DeviceBind("/dev/null", 1, 3);
    cover.at = directory + "/" + fifo.path;
    if (!overlay) {
      cover.place_dev = fifo.dev;
      cover.place_ino = fifo.ino;
    }
    cover.usable_device = cover.writable = false;
    cover.covers = true;
    root.binds.push_back(std::move(cover));
  }
}

void AddRuntime(const policy::Envelope& envelope, const OpenedRuntime& runtime, BoundaryPlan& plan,
                DirectoryList& dirs) {
  RootPart& root = plan.call_root;
  std::set<std::string> tops;
  for (size_t i = 0; i < runtime.set.files.size(); ++i) {
    const RuntimeFile& file = runtime.set.files[i];
    BindMount bind = BindOf(runtime.paths[i], file.inside, plan.own_uid);
    // Libraries are mapped executable; Landlock decides what execve may run.
    bind.executable = !IsAtOrBelow(file.inside, "/etc");
    if (BehindOverlay(envelope, runtime.paths[i])) {
      PutBehindOverlay(bind, root);
    }
    root.binds.push_back(bind);
    CoverFifos(file.inside, runtime.fifos[i], !bind.overlay_upper.empty(), root);
    dirs.AddParentsOf(file.inside);
    if (file.directory) {
      dirs.Add(file.inside);
    }
    const std::string top = TopOf(file.inside);
    if (std::find(std::begin(kSystemTops), std::end(kSystemTops), top) != std::end(kSystemTops)) {
      tops.insert(top);
    } else if (bind.executable) {
      // A program of the caller's: it alone is executable, not what else may be shown beside it.
      plan.landlock.push_back({file.inside, landlock::kRead | landlock::kExecute});
    }
  }
  for (const auto& [name, target] : runtime.set.links) {
    root.links.push_back({name, target});
    dirs.AddParentsOf(name);
  }
  for (const std::string& top : tops) {
    plan.landlock.push_back({top, landlock::kRead | landlock::kExecute});
  }
}

void AddDevices(RootPart& root, DirectoryList& dirs) {
  root.binds.push_back(DeviceBind("/dev/null", 1, 3));
  root.binds.push_back(DeviceBind("/dev/zero", 1, 5));
  root.binds.push_back(DeviceBind("/dev/full", 1, 7));
  root.binds.push_back(DeviceBind("/dev/urandom", 1, 9));
  root.binds.push_back(DeviceBind("/dev/tty", 5, 0));
  dirs.Add("/dev/pts");
  root.links.push_back({"/dev/ptmx", "pts/ptmx"});
  for (const auto& [name, target] :
       {std::pair("random", "urandom"), std::pair("fd", "/proc/self/fd"),
        std::pair("stdin", "/proc/self/fd/0"), std::pair("stdout", "/proc/self/fd/1"),
        std::pair("stderr", "/proc/self/fd/2")}) {
    root.links.push_back({std::string("/dev/") + name, target});
  }
  root.links.push_back({"/dev/shm", "/tmp"});  // one place, one size
  root.links.push_back({"/etc/mtab", "/proc/self/mounts"});
}

void AddPrivatePlaces(const policy::Envelope& envelope, RootPart& root, DirectoryList& dirs) {
  const policy::Limits& limits = envelope.limits;
  for (const PrivateTmpfs& place :
       {PrivateTmpfs{"/workspace", limits.disk, limits.inodes, 0755, envelope.exec},
        PrivateTmpfs{"/tmp", limits.tmp, policy::InodesFor(limits.tmp, kTmpInodes), 01777,
                     envelope.exec}}) {
    dirs.Add(place.at);
    if (place.at != "/workspace" || envelope.workspace.empty()) {
      root.tmpfs.push_back(place);
    }
  }
  dirs.Add("/proc");
}

// The sources lie in a directory that no Landlock rule grants: they are read in their places only.
void AddMachine(const Machine& machine, BoundaryPlan& plan, DirectoryList& dirs) {
  const std::string sources = kOwnDirectory + "/proc/";
  plan.clock_offsets = ClockOffsets();
  for (PrivateFile& file : ProcFiles(machine)) {
    const std::string name = file.at;
    file.at = sources + name;
    dirs.AddParentsOf(file.at);
    if (name != "uptime" || plan.clock_offsets.empty()) {
      plan.root.files.push_back(std::move(file));
    }
    plan.proc.push_back({sources + name, "/proc/" + name, name == "uptime"});
  }
  // Links into /proc/self. They are mounted elsewhere, only to be found in their own place.
  for (const char* link : {"mounts", "net"}) {
    plan.root.files.push_back({sources + link, "", 0444});
    plan.proc.push_back({std::string("/proc/") + link, sources + link});
  }
  for (PrivateFile& file : SysFiles(machine)) {
    dirs.AddParentsOf(file.at);
    plan.root.files.push_back(std::move(file));
  }
  dirs.AddParentsOf("/sys/fs/cgroup/memory/");
}

// What Landlock grants in every container, whatever the command.
void AddCommonRules(const policy::Envelope& envelope, BoundaryPlan& plan) {
  plan.landlock.push_back({"/", landlock::kReadDir});
  plan.landlock.push_back(
      {"/dev", landlock::kRead | landlock::kWriteFile | landlock::kTruncate | landlock::kIoctlDev});
  const uint64_t own_rights =
      landlock::kPrivateChange | landlock::ReadAndMaybeExecute(envelope.exec);
  plan.landlock.push_back({"/tmp", own_rights});
  if (envelope.workspace.empty()) {
    plan.landlock.push_back({"/workspace", own_rights});
  }
  for (const char* place : {"/proc", "/sys", "/etc", "/in"}) {
    plan.landlock.push_back({place, landlock::kRead});
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

void AddMounts(const policy::Envelope& envelope, const std::vector<OpenedMount>& mounts,
               BoundaryPlan& plan, DirectoryList& dirs) {
  RootPart& root = plan.call_root;
  const bool exec = envelope.exec;
  for (const OpenedMount& mount : mounts) {
    BindMount bind = BindOf(mount.path, mount.at, plan.own_uid);
    bind.writable = mount.access == policy::Access::kWrite;
    bind.executable = exec;
    bind.id_mapped = true;
    bind.link = mount.link;
    bind.place_dev = mount.place_dev;
    bind.place_ino = mount.place_ino;
    if (BehindOverlay(envelope, mount)) {
      PutBehindOverlay(bind, root);
    }
    root.binds.push_back(bind);
    if (mount.within) {
      continue;  // its place and Landlock's rule are those of the mount around it
    }
    dirs.AddParentsOf(mount.at);
    if (bind.directory) {
      dirs.Add(mount.at);
    }
    plan.landlock.push_back(
        {mount.at, landlock::ReadAndMaybeExecute(exec) | (bind.writable ? landlock::kChange : 0)});
  }
  // Last: a mount within another one would hide a cover below it.
  for (const OpenedMount& mount : mounts) {
    CoverFifos(mount.at, mount.fifos, BehindOverlay(envelope, mount), root);
  }
}

size_t LongestName(std::string_view path) {
  size_t longest = 0;
  for (const std::string_view name : SplitText(path, '/')) {
    longest = std::max(longest, name.size());
  }
  return longest;
}

}  // namespace

bool IsBoundaryPlace(std::string_view at) {
  return std::find(std::begin(kBoundaryPlaces), std::end(kBoundaryPlaces), at) !=
         std::end(kBoundaryPlaces);
}

bool LiesAround(const OpenedMount& outer, const OpenedMount& inner) {
  const auto own_place = [](const OpenedMount& mount) {
    return mount.path.directory && mount.at == mount.path.path;
  };
  return inner.project && !inner.within && !outer.project && !outer.within && !outer.workspace &&
         outer.access == policy::Access::kRead && own_place(outer) && own_place(inner) &&
         Inside(inner.at, outer.at);
}

Status CheckTargets(const std::vector<OpenedMount>& mounts, const RuntimeSet& runtime) {
  for (size_t i = 0; i < mounts.size(); ++i) {
    const std::string& at = mounts[i].at;
    if (mounts[i].workspace || mounts[i].within) {
      continue;
    }
    if (at.size() >= PATH_MAX || LongestName(at) > NAME_MAX) {
      return Refused("policy.mount.target",
                     fmt::format("the mount target {:.40}... is too long: {} bytes in all, {} in "
                                 "its longest name",
                                 at, at.size(), LongestName(at)),
                     "names have at most 255 bytes, paths 4095");
    }
    if (IsBoundaryPlace(at) || Inside(at, "/dev") || Inside(at, "/proc") || Inside(at, "/etc") ||
        Inside(at, "/sys") || Inside(at, "/in")) {
      return Refused(
          "policy.mount.target",
          fmt::format("{} cannot be a mount target: Cofferdam makes it itself", PathInWords(at)),
          "choose another place, such as /data");
    }
    for (const RuntimeFile& file : runtime.files) {
      // Where /usr is shown whole, a place in it can show itself: the mount point is there.
      const bool in_its_place = file.inside == "/usr" && mounts[i].path.path == at;
      if (at == file.inside || Inside(file.inside, at) ||
          (file.directory && Inside(at, file.inside) && !in_its_place)) {
        return Refused("policy.mount.target",
                       fmt::format("a mount at {} would hide {}, which the runtime needs",
                                   PathInWords(at), PathInWords(file.inside)),
                       "choose another place, such as /data");
      }
    }
    for (const auto& [name, target] : runtime.links) {
      if (at == name || Inside(at, name)) {
        return Refused("policy.mount.target",
                       fmt::format("{} is a link to {} inside, not a place for a mount",
                                   PathInWords(name), PathInWords(target)),
                       "choose another place, such as /data");
      }
    }
    for (size_t j = 0; j < i; ++j) {
      const std::string& other = mounts[j].at;
      if (mounts[j].within) {
        continue;
      }
      if (LiesAround(mounts[j], mounts[i])) {
        continue;
      }
      if (at == other || Inside(at, other) || Inside(other, at)) {
        return Refused(
            "policy.mount.overlap",
            fmt::format("the mount targets {} and {} overlap", PathInWords(other), PathInWords(at)),
            "give each mount a place of its own; only --project DIR may lie in a "
            "directory that --ro shows at its own place");
      }
    }
  }
  return {};
}

namespace {

// A mount in a hidden part of /usr shows that part itself; deeper in, there is no place to mount on.
Status HideParts(const OpenedRuntime& runtime, const std::vector<OpenedMount>& mounts,
                 RootPart& root) {
  for (const std::string& hidden : runtime.hidden) {
    const bool mounted = std::any_of(mounts.begin(), mounts.end(),
                                     [&](const OpenedMount& mount) { return mount.at == hidden; });
    for (const OpenedMount& mount : mounts) {
      if (Inside(mount.at, hidden)) {
        return Refused("policy.mount.target",
                       fmt::format("{} lies in {}, which is not the system's own and is hidden",
                                   PathInWords(mount.at), PathInWords(hidden)),
                       "give it another place inside, such as PATH:/data");
      }
    }
    if (!mounted) {
      root.hidden.push_back(hidden);
    }
  }
  return {};
}

}  // namespace

BoundaryPlan BeginContainer(const policy::Envelope& envelope, bool privileged) {
  BoundaryPlan plan;
  plan.level = policy::Level::kContainer;
  plan.uid = envelope.uid;
  plan.own_uid = privileged;
  plan.tty = envelope.tty;
  plan.landlock_canary = kOwnDirectory + "/canary";
  plan.root.files.push_back({plan.landlock_canary, "", 0444});
  DirectoryList dirs;
  dirs.Add("/dev");
  dirs.Add("/etc");
  dirs.Add("/in");
  AddPrivatePlaces(envelope, plan.root, dirs);
  AddMachine(ReadMachine(envelope.limits.memory), plan, dirs);
  AddDevices(plan.root, dirs);
  for (PrivateFile& file : SyntheticEtc(envelope.uid, plan.hostname)) {
    plan.root.files.push_back(std::move(file));
  }
  plan.root.dirs = dirs.list();
  return plan;
}

Status CompleteContainer(const policy::Envelope& envelope, const OpenedRuntime& runtime,
                         const std::vector<OpenedMount>& mounts, const std::vector<Input>& inputs,
                         BoundaryPlan& plan) {
  TRY(CheckTargets(mounts, runtime.set));
  TRY(CheckOverlays(envelope, mounts));
  DirectoryList dirs;
  RootPart& root = plan.call_root;
  AddCommonRules(envelope, plan);
  for (PrivateFile& file : RuntimeEtc(runtime.set)) {
    root.files.push_back(std::move(file));
  }
  AddRuntime(envelope, runtime, plan, dirs);
  AddInputs(inputs, envelope.workspace.empty(), root);
  AddMounts(envelope, mounts, plan, dirs);
  AddOverlayPlace(root, dirs);
  TRY(HideParts(runtime, mounts, root));

  // A link inside the runtime (/bin -> usr/bin) stands where a directory would otherwise be made; what the first half
  // made is there.
  root.dirs = dirs.list();
  std::erase_if(root.dirs, [&](const std::string& dir) {
    return std::any_of(root.links.begin(), root.links.end(),
                       [&](const PrivateLink& link) { return link.at == dir; }) ||
           std::find(plan.root.dirs.begin(), plan.root.dirs.end(), dir) != plan.root.dirs.end();
  });
  if (root.binds.size() > kMaxBinds) {
    return Refused("policy.mount.count", "too many mounts");
  }
  return {};
}

}  // namespace coffer::isolation
