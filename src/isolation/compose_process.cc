// SPDX-License-Identifier: Apache-2.0
#include "isolation/compose_process.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/syscall.h>

#include "base/path_words.h"
#include "base/sys.h"
#include "isolation/host_usr.h"
#include "isolation/package_etc.h"

namespace coffer::isolation {
namespace {

Error CannotCover(const HostPath& path, const std::vector<CoveredFile>& fifos) {
  return Refused(
      "policy.path.fifo",
      fmt::format("{} holds a fifo ({}), and the process level cannot cover it",
                  PathInWords(path.path), PathInWords(path.path + "/" + fifos.front().path)),
      "use --level container, or move the fifo away");
}

// What cannot be covered is not granted: the parts of /usr beside it are, one by one.
void AddPartsOfUsr(const OpenedRuntime& runtime, const std::vector<CoveredFile>& files,
                   BoundaryPlan& plan) {
  HiddenUsr hidden;
  for (const CoveredFile& file : files) {
    hidden.files.push_back(file.path);
  }
  for (const std::string& directory : runtime.hidden) {
    hidden.directories.push_back(directory.substr(std::string_view("/usr/").size()));
  }
  for (std::string& part : ShownPartsOfUsr(hidden)) {
    plan.landlock.push_back({std::move(part), landlock::kRead | landlock::kExecute, false});
  }
}

// As root the payload has another uid. To look at its memory and open files, which the caps need, root must be able to
// look at processes of others; in Docker it is not.
bool MayLookAtOthers() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
  return raw::Syscall(SYS_capget, raw::Arg(&header), raw::Arg(sets)) >= 0 &&
         (sets[CAP_TO_INDEX(CAP_SYS_PTRACE)].effective & CAP_TO_MASK(CAP_SYS_PTRACE)) != 0;
}

}  // namespace

Result<BoundaryPlan> ComposeProcess(const policy::Envelope& envelope, const OpenedRuntime& runtime,
                                    const std::vector<OpenedMount>& mounts,
                                    const ScratchPlace& scratch, bool privileged) {
  BoundaryPlan plan;
  plan.level = policy::Level::kProcess;
  plan.uid = envelope.uid;
  plan.own_uid = privileged;
  plan.landlock_abi = LandlockAbi();
  if (plan.landlock_abi <= 0) {
    return HostFault("isolation.landlock",
                     "the process level needs Landlock, and this kernel has none",
                     "boot with lsm=landlock,... or use a host that allows user namespaces");
  }
  if (privileged && !MayLookAtOthers()) {
    return HostFault(
        "isolation.capability",
        "root lacks CAP_SYS_PTRACE here, so the caps of a process boundary cannot be kept",
        "run coffer as an ordinary user (docker run --user 1000), or add --cap-add "
        "SYS_PTRACE to the container");
  }
  plan.scoped_kill = privileged || plan.landlock_abi >= 6;
  plan.landlock_canary = scratch.path + "/canary";
  for (size_t i = 0; i < runtime.paths.size(); ++i) {
    const HostPath& path = runtime.paths[i];
    if (path.path == "/usr" && (!runtime.fifos[i].empty() || !runtime.hidden.empty())) {
      AddPartsOfUsr(runtime, runtime.fifos[i], plan);
      continue;
    }
    if (!runtime.fifos[i].empty() && IsPackageEtc(path.path)) {
      continue;  // something in it is not public
    }
    if (!runtime.fifos[i].empty()) {
      return CannotCover(path, runtime.fifos[i]);
    }
    // By descriptor: the name may lead elsewhere by the time the rule is made.
    plan.landlock.push_back({path.path, landlock::kRead | landlock::kExecute, true, path.fd.get()});
  }
  // Public files of the host that programs insist on: with a private root they would simply not be there.
  for (const char* file :
       {"/etc/ld.so.cache", "/etc/ssl/openssl.cnf", "/etc/localtime", "/usr/lib/locale/C.utf8"}) {
    plan.landlock.push_back({file, landlock::kRead, false});
  }
  for (const char* device :
       {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}) {
    plan.landlock.push_back(
        {device, landlock::kReadFile | landlock::kWriteFile | landlock::kTruncate, false});
  }
  const uint64_t read = landlock::ReadAndMaybeExecute(envelope.exec);
  const uint64_t own = read | landlock::kPrivateChange;
  plan.landlock.push_back({scratch.path + "/workspace", own, true, scratch.workspace});
  plan.landlock.push_back({scratch.path + "/tmp", own, true, scratch.tmp});
  plan.landlock.push_back({scratch.path + "/in", landlock::kRead, true, scratch.in});
  for (const OpenedMount& mount : mounts) {
    if (mount.project) {
      return Refused("policy.project.level",
                     "--project needs mounts of its own, and the process level has none: nothing "
                     "would keep .git/hooks and the like read-only",
                     "use --level container, or --rw without that protection");
    }
    if (mount.at != mount.path.path) {
      return Refused("policy.mount.target",
                     fmt::format("{} cannot appear at {}: the process level has no private root",
                                 PathInWords(mount.path.path), PathInWords(mount.at)),
                     "use --level container, or leave out the target");
    }
    const bool writable = mount.access == policy::Access::kWrite;
    if (privileged) {
      // The boundary's uid belongs to no user: files it writes would have no owner, and modes decide by chance what it
      // can read.
      return Refused("policy.mount.level",
                     "the process level cannot id-map mounts, so as root it takes none",
                     "use --level container, or run coffer as the owner of the directory");
    }
    if (!mount.fifos.empty()) {
      return CannotCover(mount.path, mount.fifos);
    }
    LandlockRule rule;
    rule.path = mount.path.path;
    rule.rights = read | (writable ? landlock::kChange : 0);
    rule.fd = mount.path.fd.get();
    plan.landlock.push_back(std::move(rule));
  }
  return plan;
}

}  // namespace coffer::isolation
