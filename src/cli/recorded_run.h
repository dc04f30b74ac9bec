// SPDX-License-Identifier: Apache-2.0
//
// `coffer run` with a state directory: the same call, in the log and the store, its decision before it and its receipt
// after it. Apart from verb_run.cc because a run without one must not pay for it.
#pragma once

#include <optional>

#include "audit/receipt_file.h"
#include "call/run/run_request.h"

namespace coffer::cli {

// The exit status. request.state names the directory.
[[gnu::cold]] int RecordedRun(call::RunRequest& request, std::optional<audit::ReceiptFile> receipt);

}  // namespace coffer::cli
