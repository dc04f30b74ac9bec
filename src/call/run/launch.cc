// SPDX-License-Identifier: Apache-2.0
#include "call/run/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/sys.h"
#include "base/text.h"
#include "call/run/begin.h"
#include "call/run/egress_listeners.h"
#include "call/run/launch_cgroups.h"
#include "call/run/launch_egress.h"
#include "call/run/launch_filter.h"
#include "call/run/launch_layers.h"
#include "call/run/launch_terms.h"
#include "call/run/launch_tools.h"
#include "call/run/launch_trust.h"
#include "call/run/process_paths.h"
#include "call/run/tools_server.h"
#include "isolation/compose_process.h"
#include "isolation/layer_probe.h"
#include "isolation/mount_source.h"
#include "isolation/process_tree.h"
#include "limits/sweep.h"

namespace coffer::call {
namespace {

// As root every mount is cloned here, by the descriptor that was examined: the caller's own mounts
// id-mapped, for the uid that the boundary has.
Result<std::vector<UniqueFd>> CloneMounts(const Prepared& prepared,
                                          const isolation::BoundaryPlan& plan,
                                          uint32_t boundary_uid) {
  std::vector<UniqueFd> trees;
  std::map<std::pair<uid_t, gid_t>, UniqueFd> id_maps;
  // The plan has the runtime's files first, then the mounts, each in their order.
  auto file = prepared.runtime.paths.begin();
  auto mount = prepared.mounts.begin();
  for (const isolation::BindMount& bind : plan.call_root.binds) {
    UniqueFd tree;
    if (bind.supervised && bind.id_mapped) {
      UniqueFd& id_map = id_maps[{mount->path.owner, mount->path.group}];
      if (!id_map) {
        TRY_ASSIGN(id_map, isolation::MakeIdMap(mount->path, boundary_uid));
      }
      TRY_ASSIGN(tree, isolation::CloneTree(mount->path, id_map, mount->access));
      ++mount;
    } else if (bind.supervised) {
      TRY_ASSIGN(tree, isolation::CloneTree(*file));
      ++file;
    }
    trees.push_back(std::move(tree));
  }
  return trees;
}

// The sums that growth is counted from, taken before anything can grow.
Status StartDiskWatches(const RunRequest& request, const Prepared& prepared, Launched& launched) {
  // At the process level, with a scratch directory, a granted tree is the host's own with all that is mounted in it.
  const limits::MountsBelow below = launched.scratch.path().empty()
                                        ? limits::MountsBelow::kOutOfReach
                                        : limits::MountsBelow::kReachable;
  for (const isolation::OpenedMount& mount : prepared.mounts) {
    if (mount.access == policy::Access::kWrite && mount.path.directory && !mount.within) {
      TRY_ASSIGN(limits::DiskWatch watch,
                 limits::DiskWatch::Start(mount.path.fd.get(), request.envelope.limits, below));
      // The boundary's own uid stands for the one owner of the directory (isolation/mount_source.h).
      const bool mapped =
          launched.plan->own_uid && launched.plan->level == policy::Level::kContainer;
      if (mapped && !mount.workspace && watch.other_owners() > 0) {
        launched.notes.push_back(fmt::format(
            "{} files in {} belong to another user or group than {}; this call cannot change them; "
            "chown -R, or run as their owner",
            watch.other_owners(), Printable(mount.path.path), Printable(mount.path.path)));
      }
      launched.disks.push_back(std::move(watch));
    }
  }
  if (!launched.scratch.path().empty()) {
    TRY_ASSIGN(const UniqueFd dir, sys::OpenAt(launched.scratch.fd(), ".", O_RDONLY | O_DIRECTORY));
    TRY_ASSIGN(limits::DiskWatch watch,
               limits::DiskWatch::Start(dir.get(), request.envelope.limits, below));
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

// The second half of a container's plan.
Status CompletePlan(const RunRequest& request, const Prepared& prepared,
                    isolation::BoundaryPlan& plan) {
  TRY(isolation::CompleteContainer(request.envelope, prepared.runtime, prepared.mounts,
                                   prepared.inputs, plan));
  if (prepared.project) {
    for (isolation::PrivateFile& file : prepared.project->GitFiles()) {
      plan.call_root.files.push_back(std::move(file));
    }
  }
  plan.landlock_abi = isolation::LandlockAbi();
  if (plan.landlock_abi < 0) {
    return sys::ErrnoError("isolation.landlock", "the kernel does not say which Landlock it has",
                           plan.landlock_abi);
  }
  if (plan.landlock_abi == 0) {
    (void)sys::WriteAll(STDERR_FILENO,
                        "coffer: note: this kernel has no Landlock; the other layers stand\n");
  }
  return {};
}

// The whole plan at the process level, where the call works in a scratch directory of the host.
Result<isolation::BoundaryPlan> ComposeInScratch(const RunRequest& request,
                                                 const Prepared& prepared, Launched& launched) {
  TRY_ASSIGN(launched.scratch, Scratch::Make(prepared.inputs));
  TRY(isolation::AdoptOrphans());
  TRY_ASSIGN(isolation::BoundaryPlan plan,
             isolation::ComposeProcess(request.envelope, prepared.runtime, prepared.mounts,
                                       launched.scratch.place(), ::geteuid() == 0));
  plan.uids = request.uids;
  return plan;
}

// True if the call may write something of the host where the kernel does not keep it to its caps.
bool WritesWithoutQuota(const Prepared& prepared, const Launched& launched) {
  return std::any_of(prepared.mounts.begin(), prepared.mounts.end(),
                     [](const isolation::OpenedMount& mount) {
                       return mount.access == policy::Access::kWrite && !mount.path.directory;
                     }) ||
         std::any_of(launched.disks.begin(), launched.disks.end(),
                     [](const limits::DiskWatch& disk) { return !disk.enforced(); });
}

// Looks at the parked boundary from outside: it has the layers it was given, and those that the floor demands.
Status ProbeBoundary(const RunRequest& request, const Prepared& prepared, Launched& launched) {
  const isolation::ProbeExpectations expected{
      launched.cgroup.name(), launched.cgroup.layers(), request.envelope.limits.disk,
      request.envelope.limits.open_files, WritesWithoutQuota(prepared, launched)};
  TRY_ASSIGN(launched.layers, isolation::ProbeLayers(*launched.boundary, *launched.plan, expected));
  launched.probed = true;
  TRY(CheckProbe(launched));
  return CheckFloor(request, launched);
}

// What the command sends to addresses outside, without a name. A host that cannot count it refuses it all the same.
void CountSends(Launched& launched) {
  Result<isolation::UnroutedSends> sends =
      isolation::UnroutedSends::Open(launched.boundary->init_pid());
  if (sends.ok()) {
    launched.sends = std::move(sends).value();
  } else {
    launched.sends_uncounted = sends.error().message;
  }
}

// The first half of a container's plan.
isolation::BoundaryPlan BeginPlan(const RunRequest& request) {
  isolation::BoundaryPlan plan = isolation::BeginContainer(request.envelope, ::geteuid() == 0);
  if (request.tools_server != nullptr) {
    AddToolsPlace(plan);
  }
  plan.uids = request.uids;
  plan.port_sockets = PortSocketsOf(request);
  plan.name_sockets = !request.egress.empty();
  return plan;
}

// A process of the call's own takes longest, so it begins before init. The role of the daemon has
// answered long before its answer is needed: it is asked while init works.
Status SpawnInitAndEgress(const RunRequest& request, Launched& launched) {
  const bool has_egress = !request.egress.empty();
  const bool asks_role = has_egress && request.egress_door >= 0;
  if (has_egress) {
    AddResolver(*launched.plan);
  }
  if (has_egress && !asks_role) {
    TRY_ASSIGN(launched.egress, StartEgress(request));
  }
  TRY_ASSIGN(isolation::Boundary spawned, isolation::Boundary::Spawn(*launched.plan, request.own));
  launched.boundary = std::make_unique<isolation::Boundary>(std::move(spawned));
  TRY(launched.boundary->Identify());
  if (asks_role) {
    TRY_ASSIGN(launched.egress, StartEgress(request));
  }
  return {};
}

}  // namespace

// On v2 init is born in its cgroup, and this process may just have moved into a leaf, where a child
// from before would stand in the way. So the cgroup comes first, then the server of tools, then
// init.
Status BeginBoundary(const RunRequest& request, const Prepared& prepared, policy::Level level,
                     Cgroups& cgroups, Launched& launched) {
  if (level == policy::Level::kContainer) {
    launched.plan = std::make_unique<isolation::BoundaryPlan>(BeginPlan(request));
  } else {
    TRY_ASSIGN(isolation::BoundaryPlan plan, ComposeInScratch(request, prepared, launched));
    launched.plan = std::make_unique<isolation::BoundaryPlan>(std::move(plan));
  }
  TRY(ProbeCgroup(request, prepared, cgroups, launched));
  TRY(MakeCgroup(request, prepared, cgroups, launched));
  if (request.tools_server != nullptr) {
    TRY(request.tools_server->Start());
  }
  return SpawnInitAndEgress(request, launched);
}

Result<Launched> Launch(const RunRequest& request, const Prepared& prepared,
                        const LaunchOptions& options, Begun* begun) {
  TRY(CheckTerms(request, options.level));
  Launched launched = begun != nullptr ? std::move(begun->launched) : Launched();
  Cgroups cgroups = begun != nullptr ? std::move(begun->cgroups) : Cgroups();
  const bool privileged = ::geteuid() == 0;
  const bool container = options.level == policy::Level::kContainer;
  const bool has_egress = !request.egress.empty();
  isolation::Call call = prepared.call;

  // The first half of its plan, its cgroup, init and its user.
  if (begun == nullptr) {
    TRY(BeginBoundary(request, prepared, options.level, cgroups, launched));
  }

  // The rest of the plan.
  if (container) {
    TRY(CompletePlan(request, prepared, *launched.plan));
  } else {
    MoveToScratch(launched.scratch.path(), call);
    UseHostPath(prepared.runtime.set, call);
  }
  if (request.tools_server != nullptr) {
    SetToolsVariable(call);
  }
  TRY(ChooseFilter(request, prepared, options.level, launched));
  launched.promised = PromisedLayers(options.level, !prepared.mounts.empty());

  // What it gets from us.
  isolation::Boundary& boundary = *launched.boundary;
  // From here on there are waits. A signal that ends the call ends them too.
  boundary.StopWaitingWhen(options.ending_fd);
  launched.egress.StopWaitingWhen(options.ending_fd);
  std::vector<UniqueFd> trees;
  if (privileged && container) {
    TRY_ASSIGN(trees, CloneMounts(prepared, *launched.plan, boundary.host_uid()));
  } else if (privileged) {
    TRY(launched.scratch.GiveTo(boundary.host_uid()));
  }
  TRY_ASSIGN(StdioPipes stdio, MakeStdio(request.envelope.tty));
  TrustEnd trust;
  if (has_egress) {
    SetProxyVariables(call);
    TRY_ASSIGN(trust, AddTrust(request, prepared, launched.egress, *launched.plan, call));
  }
  launched.stdio = std::move(stdio.ours);
  const UniqueFd(&theirs)[3] = stdio.theirs;
  TRY(boundary.Complete({{theirs[0].get(), theirs[1].get(), theirs[2].get()}}, Numbers(trees),
                        call));
  if (trust.awaited) {
    TRY_ASSIGN(std::vector<isolation::PrivateFile> ends, AwaitTrust(trust, launched.egress));
    TRY(boundary.EndFiles(std::move(ends)));
  }
  TRY(boundary.Admit(launched.cgroup.tasks_fds(), cgroups.rlimits));
  TRY(StartDiskWatches(request, prepared, launched));

  // Beside init, which gives up its powers meanwhile. Why init failed, if it did, is said first.
  Result<EgressListeners> listeners =
      has_egress ? ListenForEgress(boundary) : Result<EgressListeners>(EgressListeners());

  // It is confined and waits. It starts only if it is what it should be.
  TRY(boundary.AwaitReady());
  if (options.probe) {
    TRY(ProbeBoundary(request, prepared, launched));
  }
  if (request.envelope.tty) {
    CopyWindowSize(boundary.pty());
  }
  if (launched.plan->port_sockets > 0) {
    TRY_ASSIGN(launched.ports, SessionPorts::Open(request, boundary));
  }
  if (!listeners.ok()) {
    return std::move(listeners.error());
  }
  if (has_egress) {
    launched.not_transparent = std::move(listeners->not_transparent);
    launched.ipv4_only = std::move(listeners->ipv4_only);
    launched.datagrams = std::move(listeners->datagrams);
    TRY(OpenEgress(std::move(listeners->sockets), launched.egress));
  }
  if (request.tools_server != nullptr) {
    TRY_ASSIGN(UniqueFd listener, ListenForTools(boundary));
    TRY(request.tools_server->Open(std::move(listener)));
  }
  if (container) {
    CountSends(launched);
  }
  // Until here nothing of the command has run; from here on it may.
  TRY(boundary.Start());
  launched.started_at = WallTime();
  launched.cgroup.CloseTasks();
  // Beside the command: what crashed calls left.
  const bool known = !launched.cgroup.name().empty() && !launched.cgroup.LiesInLevel();
  (void)limits::SweepCgroups(cgroups.host, limits::SweepDepth::kHere, known ? 1 : 0);
  return launched;
}

}  // namespace coffer::call
