// SPDX-License-Identifier: Apache-2.0
//
// The launch rung: a fresh boundary with the envelope applied, its layers compared with the floor.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "call/run/egress_process.h"
#include "call/run/payload_stdio.h"
#include "call/run/port_forwarder.h"
#include "call/run/prepare.h"
#include "call/run/scratch.h"
#include "isolation/name_datagrams.h"
#include "isolation/unrouted_sends.h"
#include "limits/cgroup/cgroup.h"

namespace coffer::call {

struct Launched {
  Scratch scratch;  // process level only
  limits::Cgroup cgroup;
  std::vector<limits::DiskWatch> disks;  // of every writable host directory
  std::vector<std::string> notes;        // what the caller should know, one sentence each
  policy::LayerSet layers;               // probed, if `probed`
  policy::LayerSet promised;             // what this level should have
  std::map<policy::Layer, std::string> cgroup_why;  // why a cgroup layer is missing
  std::string io_why;  // why block I/O is not counted by a cgroup, where it should be
  bool probed = false;
  bool locks_unchecked = false;   // exclusive locks on what may only be read are not refused
  bool asks_for_threads = false;  // the supervisor counts them: isolation/seccomp/thread_gate.h
  Nanos started_at{0};            // wall clock
  SupervisorStdio stdio;
  EgressProcess egress;         // of a call with --allow
  std::string not_transparent;  // of one: why only programs that use a proxy reach something
  std::string ipv4_only;        // of one: why names have no IPv6 addresses
  SessionPorts ports;
  isolation::NameDatagrams datagrams;  // of one whose names have addresses
  isolation::UnroutedSends sends;
  std::string sends_uncounted;                    // why `sends` counts nothing, where it should
  std::unique_ptr<isolation::BoundaryPlan> plan;  // the boundary points to it
  // Last: what is inside ends before its cgroup and its files are removed.
  std::unique_ptr<isolation::Boundary> boundary;
};

struct Begun;
struct Cgroups;

struct LaunchOptions {
  policy::Level level = policy::Level::kContainer;  // never kAuto
  bool probe = false;                               // a receipt or a floor needs the layers
  int ending_fd = -1;  // while it can be read, nothing is waited for any more: the launch fails
};

// One order of steps, for root and users, for cgroup v1 and v2. Nothing runs if this fails, and
// nothing of the attempt is left. `begun`: a container's cgroup and init that are there already
// (begin.h); they are taken over. Or null.
Result<Launched> Launch(const RunRequest& request, const Prepared& prepared,
                        const LaunchOptions& options, Begun* begun);

// The steps that can be taken before a container's command is known: the first half of the plan (at
// the process level all of it), the cgroup, and init with its user and the egress process of a call
// that has network.
Status BeginBoundary(const RunRequest& request, const Prepared& prepared, policy::Level level,
                     Cgroups& cgroups, Launched& launched);

}  // namespace coffer::call
