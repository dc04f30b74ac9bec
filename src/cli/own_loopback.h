// SPDX-License-Identifier: Apache-2.0
//
// `coffer run --allow 127.0.0.1:5432 -- psql -h 127.0.0.1`: inside, that address is the command's own.
#pragma once

#include <string>

#include "call/run/run_request.h"

namespace coffer::cli {

// A sentence about the first --allow that names a loopback address; empty if none does. For a command that failed.
std::string OwnLoopbackNote(const call::RunRequest& request);

}  // namespace coffer::cli
