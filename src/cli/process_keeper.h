// SPDX-License-Identifier: Apache-2.0
//
// A background process of a session of the command line: `coffer sessions start`.
//
// Three processes take part. The starter, in the caller's terminal, waits until the command runs,
// prints its id and ends. The keeper stays: it has left the terminal and its process group, holds
// the control socket (process_control.h), and ends the process when its session does. The runner is
// the keeper's child; it runs the call as `coffer run --session` would, with a boundary, limits and
// a receipt of its own, and a log file for its output.
//
// Nothing outlives the keeper: the kernel kills the runner with it, and the boundary with the runner. No pid is kept
// in a file. A terminal that closes changes nothing.
#pragma once

#include <cstdint>

#include "base/exit_codes.h"
#include "base/unique_fd.h"
#include "call/run/run_request.h"

namespace coffer::cli {

// What the starter is told: the id of a process that runs, or the exit status of one that does not.
struct StartMessage {
  char id[40] = {};
  int32_t exit_status = kExitFailed;
};

// In the keeper, which has left the terminal: from here to the end of the process. The keeper's exit status.
int KeepProcess(const call::RunRequest& request, UniqueFd starter);

}  // namespace coffer::cli
