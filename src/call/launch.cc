// SPDX-License-Identifier: Apache-2.0
#include "call/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <utility>

#include "base/sys.h"
#include "call/launch_cgroups.h"
#include "call/launch_layers.h"
#include "call/process_paths.h"
#include "isolation/compose_prepared.h"
#include "isolation/compose_process.h"
#include "isolation/layer_probe.h"
#include "isolation/mount_source.h"
#include "isolation/prepared_tree.h"
#include "isolation/process_tree.h"
#include "isolation/seccomp/builtin.h"
#include "isolation/seccomp/compile.h"
#include "isolation/seccomp/oci_import.h"
#include "isolation/seccomp/shared_host.h"
#include "limits/sweep.h"
#include "limits/unified.h"

namespace coffer::call {
namespace {

bool HasDirectoryMount(const Prepared& prepared) {
  for (const isolation::OpenedMount& mount : prepared.mounts) {
    if (mount.path.directory) {
      return true;
    }
  }
  return false;
}

bool HasWritableMount(const Prepared& prepared) {
  for (const isolation::OpenedMount& mount : prepared.mounts) {
    if (mount.access == policy::Access::kWrite) {
      return true;
    }
  }
  return false;
}

Status ChooseFilter(const RunRequest& request, const Prepared& prepared, policy::Level level,
                    isolation::BoundaryPlan& plan) {
  isolation::FilterOptions options;
  options.inet_sockets = level == policy::Level::kContainer;
  // A host directory may hold sockets, and connecting to one needs no write access.
  options.unix_sockets = level == policy::Level::kContainer && !HasDirectoryMount(prepared);
  const bool imported = request.envelope.syscalls == policy::SyscallProfile::kImported;
  const bool shared_host = level == policy::Level::kProcess;
  const bool on_disk = HasWritableMount(prepared) || shared_host;
  if (!imported && !on_disk) {
    plan.filter = isolation::BuiltinFilter(request.envelope.syscalls, options);
    return {};
  }
  isolation::Profile profile;
  if (imported) {
    TRY_ASSIGN(profile, isolation::ImportOciProfile(request.envelope.imported_seccomp,
                                                    isolation::NativeImportContext(options)));
  } else {
    profile = isolation::BuiltinProfile(request.envelope.syscalls, options);
  }
  if (shared_host) {
    TRY_ASSIGN(plan.served, isolation::Compile(profile, isolation::NativeSyscalls()));
    isolation::KeepToOwnProcess(plan.landlock_abi, profile);
  }
  if (on_disk) {
    // fallocate can take any amount of a disk in one call, past RLIMIT_FSIZE, before a watch could see it. Programs fall
    // back to writing.
    profile.rules.insert(profile.rules.begin(), {"fallocate", isolation::FailWith(EOPNOTSUPP), {}});
  }
  TRY_ASSIGN(plan.own_filter, isolation::Compile(profile, isolation::NativeSyscalls()));
  plan.filter = plan.own_filter;
  return {};
}

// As root every mount is cloned here: the caller's own id-mapped, for the uid that the boundary turned out to have.
Result<std::vector<UniqueFd>> CloneMounts(const Prepared& prepared,
                                          const isolation::BoundaryPlan& plan,
                                          uint32_t boundary_uid, UniqueFd devices,
                                          std::vector<UniqueFd> places) {
  std::vector<UniqueFd> trees;
  auto place = places.begin();
  auto mount = prepared.mounts.begin();
  for (const isolation::BindMount& bind : plan.call_root.binds) {
    UniqueFd tree;
    if (bind.prepared && bind.device) {
      tree = std::exchange(devices, UniqueFd());
    } else if (bind.prepared) {
      tree = std::move(*place++);
    } else if (bind.supervised && bind.follow_links) {
      TRY_ASSIGN(tree, isolation::CloneSystemTree(bind.host));
    } else if (bind.supervised) {
      // The plan has the mounts in the order in which they were asked for.
      TRY_ASSIGN(const UniqueFd id_map, isolation::MakeIdMap(mount->path, boundary_uid));
      TRY_ASSIGN(tree, isolation::CloneTree(mount->path, id_map, mount->access));
      ++mount;
    }
    trees.push_back(std::move(tree));
  }
  return trees;
}

// The trees of the plan's places, in their order. What cannot be had becomes part of the private root.
std::vector<UniqueFd> OpenPlaces(isolation::BoundaryPlan& plan) {
  std::vector<UniqueFd> trees;
  std::vector<isolation::PreparedPlace> had;
  for (isolation::PreparedPlace& place : plan.places) {
    if (Result<UniqueFd> tree = isolation::OpenPreparedTree(place.content); tree.ok()) {
      trees.push_back(std::move(tree).value());
      had.push_back(std::move(place));
    } else {
      isolation::MakePrivate(place, plan);
    }
  }
  plan.places = std::move(had);
  return trees;
}

// The sums that growth is counted from, taken before anything can grow.
Status StartDiskWatches(const RunRequest& request, const Prepared& prepared, Launched& launched) {
  for (const isolation::OpenedMount& mount : prepared.mounts) {
    if (mount.access == policy::Access::kWrite && mount.path.directory) {
      TRY_ASSIGN(limits::DiskWatch watch,
                 limits::DiskWatch::Start(mount.path.fd.get(), request.envelope.limits));
      launched.disks.push_back(std::move(watch));
    }
  }
  if (!launched.scratch.path().empty()) {
    TRY_ASSIGN(const UniqueFd dir, sys::Open(launched.scratch.path(), O_RDONLY | O_DIRECTORY));
    TRY_ASSIGN(limits::DiskWatch watch,
               limits::DiskWatch::Start(dir.get(), request.envelope.limits));
    launched.disks.push_back(std::move(watch));
  }
  return {};
}

std::vector<int> Numbers(const std::vector<UniqueFd>& fds) {
  std::vector<int> numbers;
  numbers.reserve(fds.size());
  for (const UniqueFd& fd : fds) {
    numbers.push_back(fd.get());
  }
  return numbers;
}

// The command may ask for it as soon as it runs.
void CopyWindowSize(int master) {
  winsize size{};
  if (::ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0) {
    ::ioctl(master, TIOCSWINSZ, &size);
  }
}

}  // namespace

Result<Launched> Launch(const RunRequest& request, const Prepared& prepared,
                        const LaunchOptions& options, Begun begun) {
  Launched launched;
  launched.begun = std::move(begun);
  std::unique_ptr<isolation::BoundaryPlan>& plan = launched.begun.plan;
  const bool early = plan != nullptr;
  const bool privileged = ::geteuid() == 0;
  const bool container = options.level == policy::Level::kContainer;
  isolation::Call call = prepared.call;
  std::vector<UniqueFd> places;  // the prepared ones
  if (container) {
    if (!early) {
      plan = std::make_unique<isolation::BoundaryPlan>(
          BeginPlan(request, privileged, launched.begun.devices));
    }
    TRY(isolation::CompleteContainer(request.envelope, prepared.runtime, prepared.mounts,
                                     prepared.inputs, *plan));
    places = OpenPlaces(*plan);
    plan->landlock_abi = isolation::LandlockAbi();
    if (plan->landlock_abi < 0) {
      return sys::ErrnoError("isolation.landlock", "the kernel does not say which Landlock it has",
                             plan->landlock_abi);
    }
    if (plan->landlock_abi == 0) {
      (void)sys::WriteAll(STDERR_FILENO,
                          "coffer: note: this kernel has no Landlock; the other layers stand\n");
    }
  } else {
    TRY_ASSIGN(launched.scratch, Scratch::Make(prepared.inputs));
    TRY_ASSIGN(isolation::BoundaryPlan composed,
               isolation::ComposeProcess(request.envelope, prepared.runtime, prepared.mounts,
                                         launched.scratch.path(), privileged));
    plan = std::make_unique<isolation::BoundaryPlan>(std::move(composed));
    MoveToScratch(launched.scratch.path(), call);
    UseHostPath(prepared.runtime, call);
    TRY(isolation::AdoptOrphans());
    if (request.envelope.tty) {
      return Refused("policy.tty", "a terminal of its own needs --level container");
    }
  }
  TRY(ChooseFilter(request, prepared, options.level, *plan));
  launched.promised = PromisedLayers(options.level, !prepared.mounts.empty());

  // On v2 the child is born in its cgroup, which must exist before; on v1 everything about cgroups can be done while
  // the child already works.
  Cgroups cgroups;
  const bool born_inside = !early && (options.cgroup_first || limits::UnifiedCgroups());
  if (born_inside) {
    TRY(ProbeCgroup(request, prepared, cgroups, launched));
    TRY(MakeCgroup(request, prepared, cgroups, launched));
    plan->clone_into_cgroup = launched.cgroup.clone_into_fd();
  }
  if (!early) {
    TRY(Begin(request, isolation::CallBytes(call), launched.begun));
  }
  isolation::Boundary& boundary = *launched.begun.boundary;
  std::vector<UniqueFd> trees;
  if (!container && privileged) {
    TRY(launched.scratch.GiveTo(boundary.host_uid()));
  }
  if (container && privileged) {
    TRY_ASSIGN(trees, CloneMounts(prepared, *plan, boundary.host_uid(),
                                  std::move(launched.begun.devices), std::move(places)));
  }
  TRY(MakeStdio(request.envelope.tty, launched.begun));
  const UniqueFd(&theirs)[3] = launched.begun.theirs;
  if (!born_inside) {
    boundary.SendAway();
  }
  TRY(boundary.Complete({{theirs[0].get(), theirs[1].get(), theirs[2].get()}}, Numbers(trees)));
  if (!born_inside) {
    TRY(ProbeCgroup(request, prepared, cgroups, launched));
    TRY(MakeCgroup(request, prepared, cgroups, launched));
    if (launched.cgroup.clone_into_fd() >= 0) {
      // A v2 hierarchy with controllers, mounted where we did not look: this child can no longer get into it.
      LaunchOptions again = options;
      again.cgroup_first = true;
      launched.begun.boundary.reset();
      return Launch(request, prepared, again);
    }
  }
  isolation::CgroupEntry entry{launched.cgroup.tasks_fds()};
  UniqueFd outside;
  if (plan->shares_memory) {
    TRY(ChooseEntry(launched.cgroup, cgroups.host, entry, outside));
  }
  TRY(boundary.Admit(entry, cgroups.rlimits));
  TRY(boundary.Give(call));
  TRY(StartDiskWatches(request, prepared, launched));
  // Where nothing has to be seen to first, the go is given before anybody waits for it.
  const bool at_once = !options.probe && !request.envelope.tty;
  if (at_once) {
    TRY(boundary.Start());
  }
  TRY(boundary.AwaitReady());
  launched.cgroup.CloseTasks();
  for (UniqueFd& fd : launched.begun.theirs) {
    fd.Reset();
  }
  if (options.probe) {
    const isolation::ProbeExpectations expected{
        launched.cgroup.name(), launched.cgroup.layers(), request.envelope.limits.disk,
        request.envelope.limits.open_files, HasWritableMount(prepared)};
    TRY_ASSIGN(launched.layers, isolation::ProbeLayers(boundary, *plan, expected));
    launched.probed = true;
    TRY(CheckProbe(launched));
    TRY(CheckFloor(request, launched));
  }
  if (request.envelope.tty) {
    CopyWindowSize(boundary.pty());
  }
  if (!at_once) {
    TRY(boundary.Start());
  }
  launched.started_at = WallTime();
  // Beside the command.
  (void)limits::SweepCgroups(cgroups.host, limits::SweepDepth::kHere,
                             launched.cgroup.name().empty() ? 0 : 1);
  return launched;
}

}  // namespace coffer::call
