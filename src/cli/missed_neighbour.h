// SPDX-License-Identifier: Apache-2.0
//
// `coffer run app.py`, and app.py imports helper.py or opens data.csv beside it. FILE comes in alone, so they are missing.
#pragma once

#include <string>

#include "call/run/run_request.h"

namespace coffer::cli {

// A sentence about the first file beside the script that the script's text names, and that was not brought in; empty if
// there is none. For a script that failed.
std::string MissedNeighbourNote(const call::RunRequest& request);

}  // namespace coffer::cli
