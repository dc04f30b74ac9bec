// SPDX-License-Identifier: Apache-2.0
//
// A note for a command that failed and that was allowed a loopback address, as in `coffer run --allow 127.0.0.1:5432 -- psql
// -h 127.0.0.1`. A boundary has a loopback of its own, so programs inside never reach the host's.
#pragma once

#include <string>

#include "call/run/run_request.h"

namespace coffer::cli {

// A sentence about the first --allow that names a loopback address; empty if none does. For a command that failed.
std::string OwnLoopbackNote(const call::RunRequest& request);

}  // namespace coffer::cli
