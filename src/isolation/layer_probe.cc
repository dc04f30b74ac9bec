// SPDX-License-Identifier: Apache-2.0
#include "isolation/layer_probe.h"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <charconv>

#include "base/sys.h"

namespace coffer::isolation {
namespace {

using policy::Layer;
using policy::LayerSet;

// The value of "Name:\tvalue" in a status file, or nothing.
std::string_view Field(std::string_view status, std::string_view name) {
  const std::string key = "\n" + std::string(name) + ":\t";
  const size_t at = status.find(key);
  if (at == std::string_view::npos) {
    return {};
  }
  const size_t start = at + key.size();
  return status.substr(start, status.find('\n', start) - start);
}

bool AllZero(std::string_view digits) {
  return !digits.empty() && digits.find_first_not_of('0') == std::string_view::npos;
}

void ProbeStatus(std::string_view status, const Boundary& boundary, LayerSet& active) {
  bool no_capabilities = true;
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
    no_capabilities = no_capabilities && AllZero(Field(status, set));
  }
  if (no_capabilities) {
    active.Add(Layer::kCapabilities);
  }
  if (Field(status, "NoNewPrivs") == "1") {
    active.Add(Layer::kNoNewPrivs);
  }
  if (Field(status, "Seccomp") == "2") {
    active.Add(Layer::kSeccomp);
  }
  const std::string_view uids = Field(status, "Uid");
  const std::string expected = fmt::format("{0}\t{0}\t{0}\t{0}", boundary.host_uid());
  if (uids == expected && boundary.host_uid() != 0) {
    active.Add(Layer::kUid);
  }
}

void ProbeNamespaces(int proc, LayerSet& active) {
  static constexpr std::pair<const char*, Layer> kSpaces[] = {
      {"user", Layer::kUserns},     {"mnt", Layer::kMountns}, {"pid", Layer::kPidns},
      {"net", Layer::kNetns},       {"ipc", Layer::kIpcns},   {"uts", Layer::kUtsns},
      {"cgroup", Layer::kCgroupns},
  };
  for (const auto& [name, layer] : kSpaces) {
    const Result<std::string> theirs = sys::ReadLinkAt(proc, std::string("ns/") + name);
    const Result<std::string> ours =
        sys::ReadLinkAt(AT_FDCWD, std::string("/proc/self/ns/") + name);
    if (theirs.ok() && ours.ok() && *theirs != *ours) {
      active.Add(layer);
    }
  }
}

void ProbeRoot(const std::string& proc, const Boundary& boundary, const ProbeExpectations& expected,
               LayerSet& active) {
  struct stat ours;
  struct stat theirs;
  struct statfs file_system;
  const std::string root = proc + "root/";
  if (::stat("/", &ours) == 0 && ::stat(root.c_str(), &theirs) == 0 &&
      ours.st_dev != theirs.st_dev && ::statfs(root.c_str(), &file_system) == 0 &&
      file_system.f_type == TMPFS_MAGIC) {
    active.Add(Layer::kPrivateRoot);
    const bool shows_proc = ::statfs((root + "proc/").c_str(), &file_system) == 0 &&
                            file_system.f_type == PROC_SUPER_MAGIC;
    // Kernel-wide, and not one of those that a boundary shows (plan.proc).
    struct stat kernel_wide;
    if (shows_proc == boundary.proc_mounted() &&
        ::stat((root + "proc/sys").c_str(), &kernel_wide) != 0) {
      active.Add(Layer::kPrivateProc);
    }
    if (!expected.writable_mounts && ::statfs((root + "workspace/").c_str(), &file_system) == 0 &&
        static_cast<uint64_t>(file_system.f_blocks) * static_cast<uint64_t>(file_system.f_bsize) <=
            expected.workspace_bytes + 4096) {
      active.Add(Layer::kDiskQuota);
    }
  }
}

void ProbeRlimits(int proc, uint64_t open_files, LayerSet& active) {
  const Result<std::string> limits = sys::ReadFileAt(proc, "limits");
  if (!limits.ok()) {
    return;
  }
  const size_t at = limits->find("Max open files");
  if (at == std::string::npos) {
    return;
  }
  uint64_t soft = 0;
  const size_t digits = limits->find_first_of("0123456789", at);
  std::from_chars(limits->data() + digits, limits->data() + limits->size(), soft);
  if (soft > 0 && soft <= open_files) {
    active.Add(Layer::kRlimits);
  }
}

}  // namespace

Result<policy::LayerSet> ProbeLayers(const Boundary& boundary, const BoundaryPlan& plan,
                                     const ProbeExpectations& expected) {
  LayerSet active;
  const std::string proc = fmt::format("/proc/{}/", boundary.init_pid());
  TRY_ASSIGN(const UniqueFd dir, sys::Open(proc, O_PATH | O_DIRECTORY));
  TRY_ASSIGN(const std::string status, sys::ReadFileAt(dir.get(), "status"));
  ProbeStatus(status, boundary, active);
  ProbeNamespaces(dir.get(), active);
  if (plan.level == policy::Level::kContainer) {
    ProbeRoot(proc, boundary, expected, active);
  }
  ProbeRlimits(dir.get(), expected.open_files, active);
  if (boundary.landlock_held()) {
    active.Add(Layer::kLandlock);
  }
  if (!expected.cgroup_layers.empty()) {
    const Result<std::string> cgroups = sys::ReadFileAt(dir.get(), "cgroup");
    if (cgroups.ok() && cgroups->find(expected.cgroup_name) != std::string::npos) {
      active = active.Union(expected.cgroup_layers);
    }
  }
  return active;
}

}  // namespace coffer::isolation
