// SPDX-License-Identifier: Apache-2.0
//
// Puts into a run with --tools the means to call them: a socket, this program, and the variable that names the socket.
//
//   /run/coffer/tools.sock     where the tools server listens (tools_server.h); a tmpfs of its own holds it
//   /run/coffer/bin/coffer     this program, read-only, on PATH: `coffer call`
//
// A UNIX socket that is bound to a path can be used by every process that reaches the path. So it is bound in the
// boundary's own tmpfs, by descriptor, and nowhere on the host. No mount of the caller may lie there.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"
#include "call/run/run_request.h"
#include "isolation/boundary.h"
#include "isolation/plan.h"
#include "isolation/runtime/runtime_set.h"

namespace coffer::call {

inline constexpr const char* kToolsProgram = "/run/coffer/bin/coffer";
// Names the socket, inside.
inline constexpr const char* kToolsVariable = "COFFER_TOOLS_SOCKET";

// kRefused if the level, the system calls or a mount leave no room for it.
Status CheckTools(const RunRequest& request, policy::Level level);

// This program among the files that are shown.
Status AddToolsProgram(isolation::RuntimeSet& runtime);

// The place of the socket. Only between the two halves of a plan.
void AddToolsPlace(isolation::BoundaryPlan& plan);

void SetToolsVariable(isolation::Call& call);

// For a boundary that is ready and has not started.
Result<UniqueFd> ListenForTools(const isolation::Boundary& boundary);

}  // namespace coffer::call
