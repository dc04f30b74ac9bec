// SPDX-License-Identifier: Apache-2.0
//
// A background process of a session of the command line: `coffer sessions start`.
//
// Three processes take part. The starter, in the caller's terminal, waits until the command runs, prints its id and ends.
// The keeper stays: it has left the terminal and its process group, holds the control socket (process_control.h), and
// ends the process when its session does. The runner is the keeper's child; it runs the call as `coffer run --session`
// would, with a boundary, limits and a receipt of its own, and a log file for its output.
//
// Nothing outlives the keeper: the kernel kills the runner with it, and the boundary with the runner. No pid is kept
// in a file. A terminal that closes changes nothing.
#pragma once

#include <string>

#include "base/result.h"
#include "call/run/run_request.h"

namespace coffer::cli {

// Starts `request` in the session that it names; request.state is set. Returns the process's id when the command runs. The
// exit status if it does not: then the runner has said why on stderr.
struct Started {
  std::string id;
  int exit_status = 0;
};
Result<Started> StartProcess(const call::RunRequest& request);

}  // namespace coffer::cli
