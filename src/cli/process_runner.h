// SPDX-License-Identifier: Apache-2.0
//
// The keeper's child, which runs the call of a background process and says how far it has come.
#pragma once

#include <atomic>
#include <optional>

#include "base/result.h"
#include "base/unique_fd.h"
#include "call/run/run_request.h"
#include "cli/process_control.h"
#include "cli/process_places.h"

namespace coffer::cli {

// Why the process is being stopped: the keeper says it before it signals, the runner puts it into
// the receipt. Memory that both share.
class SharedStop {
 public:
  static Result<SharedStop> Make();
  void Say(StopReason reason) { place_->store(static_cast<int32_t>(reason)); }
  StopReason reason() const { return static_cast<StopReason>(place_->load()); }

 private:
  std::atomic<int32_t>* place_ = nullptr;  // as long as the process
};

enum class RunnerStep : uint8_t { kAdmitted, kLaunched, kEnded };

struct RunnerReport {
  RunnerStep step = RunnerStep::kAdmitted;
  ProcessInfo process;  // its id when it is admitted; how it went when it has ended
};

// The next report; nothing if none waits, or if the runner has gone.
std::optional<RunnerReport> ReadReport(int socket);

// In the runner. Errors go to stderr until the command runs; then stdout and stderr are its log. `channel` is the
// forwarder's end, empty without ports. Returns the exit status.
int RunInBackground(const call::RunRequest& request, UniqueFd reports, UniqueFd channel,
                    const SharedStop& stop);

}  // namespace coffer::cli
