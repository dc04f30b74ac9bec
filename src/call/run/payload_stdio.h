// SPDX-License-Identifier: Apache-2.0
//
// The pipes between the supervisor and the command's stdin, stdout and stderr.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"
#include "call/run/supervise.h"

namespace coffer::call {

struct StdioPipes {
  SupervisorStdio ours;  // empty with a terminal
  UniqueFd theirs[3];    // in the descriptor table that init shares until it is ready
};

// With `tty` the terminal is made inside; until then `theirs` only hold its three places.
Result<StdioPipes> MakeStdio(bool tty);

}  // namespace coffer::call
