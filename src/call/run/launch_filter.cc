// SPDX-License-Identifier: Apache-2.0
#include "call/run/launch_filter.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include <algorithm>
#include <string_view>

#include "isolation/compose_overlay.h"
#include "isolation/seccomp/builtin.h"
#include "isolation/seccomp/compile.h"
#include "isolation/seccomp/evaluator.h"
#include "isolation/seccomp/install.h"
#include "isolation/seccomp/oci_import.h"
#include "isolation/seccomp/shared_host.h"
#include "isolation/seccomp/syscall_table.h"
#include "isolation/seccomp/thread_gate.h"
#include "isolation/seccomp/waiting_thread.h"
#include "limits/tree_scan.h"

namespace coffer::call {
namespace {

// True if a directory is shown that may hold a socket of the host: any of the caller's, and /usr as a whole, where
// administrators and services keep what they like. Behind an overlay a socket is another one, that leads nowhere.
bool MayShowHostSockets(const policy::Envelope& envelope, const Prepared& prepared) {
  return (!envelope.overlay &&
          (prepared.runtime.ShowsCallerDirectory() || prepared.runtime.ShowsAllOfUsr())) ||
         std::any_of(prepared.mounts.begin(), prepared.mounts.end(),
                     [&](const isolation::OpenedMount& mount) {
                       return mount.path.directory && !isolation::BehindOverlay(envelope, mount);
                     });
}

// True if files are shown that may only be read, and are the host's own inodes: those of a runtime, and mounts.
bool ShowsReadOnly(const policy::Envelope& envelope, const Prepared& prepared) {
  return !envelope.overlay || std::any_of(prepared.mounts.begin(), prepared.mounts.end(),
                                          [&](const isolation::OpenedMount& mount) {
                                            return mount.access != policy::Access::kWrite &&
                                                   !isolation::BehindOverlay(envelope, mount);
                                          });
}

// True if the profile itself lets `name` through, when nothing is left to the supervisor.
Result<bool> Allows(const isolation::Profile& profile, std::string_view name) {
  TRY_ASSIGN(const std::vector<sock_filter> program,
             isolation::Compile(profile, isolation::NativeSyscalls()));
  seccomp_data call{};
  call.nr = isolation::SyscallNumber(name);
  call.arch = isolation::NativeSyscalls().audit_arch;
  TRY_ASSIGN(const uint32_t verdict, isolation::Evaluate(program, call));
  return verdict == SECCOMP_RET_ALLOW;
}

Result<isolation::Profile> MakeProfile(const policy::Envelope& envelope,
                                       isolation::FilterOptions options) {
  if (envelope.syscalls == policy::SyscallProfile::kImported) {
    return isolation::ImportOciProfile(envelope.imported_seccomp,
                                       isolation::NativeImportContext(options));
  }
  return isolation::BuiltinProfile(envelope.syscalls, options);
}

// True if what a call puts into extended attributes is seen wherever it may write on the host.
bool SeesAttributes(const Prepared& prepared, const Scratch& scratch) {
  return (scratch.path().empty() || limits::CountsAttributes(scratch.fd())) &&
         std::all_of(prepared.mounts.begin(), prepared.mounts.end(),
                     [](const isolation::OpenedMount& mount) {
                       return mount.access != policy::Access::kWrite ||
                              limits::CountsAttributes(mount.path.fd.get());
                     });
}

void RefuseAttributes(isolation::Profile& profile) {
  for (const char* name : {"setxattr", "lsetxattr", "fsetxattr", "setxattrat"}) {
    profile.rules.insert(profile.rules.begin(), {name, isolation::FailWith(EOPNOTSUPP), {}});
  }
}

void NarrowProfile(bool shared_host, bool on_disk, int landlock_abi, isolation::Profile& profile) {
  if (shared_host) {
    isolation::KeepToOwnProcess(landlock_abi, profile);
  }
  if (on_disk) {
    // fallocate can take any amount of a disk in one call, past RLIMIT_FSIZE, before a watch could
    // see it. Programs fall back to writing.
    profile.rules.insert(profile.rules.begin(), {"fallocate", isolation::FailWith(EOPNOTSUPP), {}});
  }
}

}  // namespace

bool HasWritableMount(const Prepared& prepared) {
  return std::any_of(
      prepared.mounts.begin(), prepared.mounts.end(),
      [](const isolation::OpenedMount& mount) { return mount.access == policy::Access::kWrite; });
}

Status ChooseFilter(const RunRequest& request, const Prepared& prepared, policy::Level level,
                    Launched& launched) {
  isolation::BoundaryPlan& plan = *launched.plan;
  const policy::Envelope& envelope = request.envelope;
  const bool container = level == policy::Level::kContainer;
  const bool imported = envelope.syscalls == policy::SyscallProfile::kImported;
  const bool on_disk = HasWritableMount(prepared) || !container;
  const bool sees_attributes = SeesAttributes(prepared, launched.scratch);
  const bool duplicates = isolation::CanDuplicateDescriptors();
  isolation::FilterOptions plain;  // nothing is left to the supervisor
  plain.inet_sockets = container;
  plain.host_paths = !container || MayShowHostSockets(envelope, prepared);
  plain.unix_sockets = !plain.host_paths;
  plain.own_id = container ? envelope.uid : isolation::kEveryId;
  isolation::FilterOptions options = plain;
  options.own_figures = true;
  // Without Landlock a socket could be made in a directory of the host, for its programs to connect to.
  options.unix_sockets =
      container &&
      (!plain.host_paths || ((plan.landlock_abi > 0 || !HasWritableMount(prepared)) && duplicates));
  const bool reads_only = !container || ShowsReadOnly(envelope, prepared);
  options.own_locks = reads_only && duplicates;
  launched.locks_unchecked = reads_only && !duplicates;
  if (request.tools_server != nullptr && !options.unix_sockets) {
    return Refused("policy.tools",
                   "--tools needs UNIX sockets, which this host cannot allow safely "
                   "beside a writable directory",
                   "leave out --rw; `coffer doctor` says what this host lacks");
  }
  plan.serve_sysinfo = options.own_figures;
  plan.serve_locks = options.own_locks;
  plan.serve_connect = options.unix_sockets && options.host_paths &&
                       envelope.syscalls != policy::SyscallProfile::kStrict;
  if (imported) {
    isolation::FilterOptions all = plain;
    all.unix_sockets = container;
    all.host_paths = false;
    TRY_ASSIGN(const isolation::Profile profile, MakeProfile(envelope, all));
    TRY_ASSIGN(const bool connects, Allows(profile, "connect"));
    TRY_ASSIGN(const bool asks, Allows(profile, "sysinfo"));
    TRY_ASSIGN(const bool locks, Allows(profile, "flock"));
    plan.serve_connect = plan.serve_connect && connects;
    plan.serve_sysinfo = plan.serve_sysinfo && asks;
    plan.serve_locks = plan.serve_locks && locks;
  }
  // A filter around us may have the one listener that the kernel allows. For that case there is a
  // program that leaves nothing to the supervisor.
  if (::prctl(PR_GET_SECCOMP) != 0) {
    TRY_ASSIGN(isolation::Profile profile, MakeProfile(envelope, plain));
    NarrowProfile(!container, on_disk, plan.landlock_abi, profile);
    if (!sees_attributes) {
      RefuseAttributes(profile);
    }
    TRY_ASSIGN(plan.unserved_filter, isolation::Compile(profile, isolation::NativeSyscalls()));
  }
  // A profile of the caller's own may say something else about clone. Before Linux 5.19 a signal
  // would interrupt the wait.
  launched.asks_for_threads =
      launched.asks_for_threads && !imported && isolation::CanWaitKillable();
  const bool usual_id = plain.own_id == isolation::kUsualId;
  // The usual calls have a program that was compiled at build time (ADR 10).
  if (!imported && !on_disk && !launched.asks_for_threads && usual_id) {
    plan.filter = isolation::BuiltinFilter(envelope.syscalls, options);
    return {};
  }
  TRY_ASSIGN(isolation::Profile profile, MakeProfile(envelope, options));
  if (!container) {
    TRY_ASSIGN(plan.served, isolation::Compile(profile, isolation::NativeSyscalls()));
  }
  NarrowProfile(!container, on_disk, plan.landlock_abi, profile);
  if (!sees_attributes) {
    RefuseAttributes(profile);
  }
  if (launched.asks_for_threads) {
    isolation::AskForThreads(profile);
  }
  TRY_ASSIGN(plan.own_filter, isolation::Compile(profile, isolation::NativeSyscalls()));
  plan.filter = plan.own_filter;
  return {};
}

}  // namespace coffer::call
