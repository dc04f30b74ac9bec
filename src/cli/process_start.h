// SPDX-License-Identifier: Apache-2.0
//
// The starter's part of a background process (process_keeper.h): room for it, the fork, and the wait until it runs.
#pragma once

#include <string>

#include "base/result.h"
#include "call/run/run_request.h"

namespace coffer::cli {

// Starts `request` in the session that it names; request.state is set. Returns the process's id
// when the command runs. The exit status if it does not: then the runner has said why on stderr.
struct Started {
  std::string id;
  int exit_status = 0;
};
Result<Started> StartProcess(const call::RunRequest& request);

}  // namespace coffer::cli
