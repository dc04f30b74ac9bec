// SPDX-License-Identifier: Apache-2.0
//
// `coffer run` with a state directory: the same call, in the log and the store, its decision before it and its receipt
// after it. Apart from verb_run.cc because a run without one must not pay for it.
#pragma once

#include <optional>
#include <string>

#include "audit/receipt_file.h"
#include "call/run/run_call.h"
#include "call/run/run_request.h"

namespace coffer::cli {

// For a caller that has to know how far a run has come: the runner of a background process (process_keeper.h).
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  // It is admitted and has an id, and nothing has happened. An Error ends it.
  virtual Status Admitted(const std::string& call_id) = 0;
  virtual void Launched() = 0;
  // Before the receipt is sealed. May say why it was stopped.
  virtual void Ended(call::RunOutcome& outcome) = 0;
};

// The exit status. request.state names the directory.
[[gnu::cold]] int RecordedRun(call::RunRequest& request, std::optional<audit::ReceiptFile> receipt,
                              RunObserver* observer = nullptr);

}  // namespace coffer::cli
