// SPDX-License-Identifier: Apache-2.0
//
// `coffer run app.py --memory 1GiB`: a flag of coffer behind the file. It is an argument of the script, and sets no cap.
#pragma once

#include <string>

#include "call/run/run_request.h"

namespace coffer::cli {

// A sentence about the first argument of a script that is a flag of `coffer run`; empty if there is none. For a script
// that failed: others may have flags of the same names.
std::string MisplacedFlagNote(const call::RunRequest& request);

}  // namespace coffer::cli
