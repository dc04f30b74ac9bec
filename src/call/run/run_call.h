// SPDX-License-Identifier: Apache-2.0
//
// One call of `coffer run`, from request to receipt. run_call.cc has its rungs in order, in the words of call/ladder.h.
#pragma once

#include <optional>

#include "audit/receipt.h"
#include "base/error.h"
#include "base/exit_codes.h"
#include "call/run/run_request.h"

namespace coffer::call {

struct RunOutcome {
  int exit_status = kExitFailed;
  std::optional<Error> error;  // what to tell the caller, if the call did not end by itself
  int interrupted_by = 0;      // the signal that this process was told to end the call with
  audit::Receipt receipt;
  std::vector<std::string> exports;   // the bytes of receipt.exported, in its order
  std::vector<std::string> notes;     // what the caller should know; one sentence each
  std::vector<std::string> warnings;  // the same, printed with --quiet too
};

// Never fails: every way to end is an outcome with a receipt.
RunOutcome RunCall(const RunRequest& request);

}  // namespace coffer::call
