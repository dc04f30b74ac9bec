// SPDX-License-Identifier: Apache-2.0
//
// Composes the plan of a container boundary: what its private root holds, where it may write, what Landlock grants.
//
// Inside: the runtime's files and nothing else of the host; a synthetic /etc; a minimal /dev; /proc of its own
// processes; /workspace and /tmp in memory with a size; inputs as copies in /in, with a link in /workspace; the
// mounts that were asked for. No /sys, no /home, no /root, no /var.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "isolation/fifo_search.h"
#include "isolation/host_path.h"
#include "isolation/opened_runtime.h"
#include "isolation/plan.h"
#include "policy/envelope.h"

namespace coffer::isolation {

// A host path that was opened, and where it goes.
struct OpenedMount {
  HostPath path;
  std::string at;
  policy::Access access = policy::Access::kRead;
  std::vector<CoveredFile> fifos;
  bool workspace = false;  // a session's own /workspace: the one own place that can be a mount
  bool project =
      false;  // holds what is protected (call/run/project.h): only where mounts can be made
  bool within = false;  // lies in a mount before it, at its own place there
  bool link = false;    // a link, mounted on itself
  // The inode that it covers in a mount before it (mount_place.h); 0: its place is in the private root.
  dev_t place_dev = 0;
  ino_t place_ino = 0;
};

// A file brought in by copy.
struct Input {
  std::string name;  // below /in
  std::string content;
  // Of the host, as the file was examined.
  std::string host = {};
  PathClass path_class = PathClass::kCaller;
  BindReason reason = BindReason::kInput;
};

// True for the places that Cofferdam makes itself ("/", "/tmp", "/usr", ...), which cannot be mount targets.
bool IsBoundaryPlace(std::string_view at);

// True if `inner` is a project at its own place in `outer`, a directory that is shown read-only at its own place: the one
// mount that may lie in another one (call/run/project_around.h).
bool LiesAround(const OpenedMount& outer, const OpenedMount& inner);

// A mount target: absolute, clean, not a place that Cofferdam makes itself, not above or inside another one but for
// LiesAround, and not hiding a file of the runtime.
Status CheckTargets(const std::vector<OpenedMount>& mounts, const RuntimeSet& runtime);

// The half of the plan that the envelope alone decides. `privileged`: the supervisor is root; it gives the boundary a
// uid of its own, and clones what is mounted itself.
BoundaryPlan BeginContainer(const policy::Envelope& envelope, bool privileged);

// The other half: the mounts of the command and of the request. The descriptors in `runtime` and
// `mounts` must stay open until the boundary is ready.
Status CompleteContainer(const policy::Envelope& envelope, const OpenedRuntime& runtime,
                         const std::vector<OpenedMount>& mounts, const std::vector<Input>& inputs,
                         BoundaryPlan& plan);

}  // namespace coffer::isolation
