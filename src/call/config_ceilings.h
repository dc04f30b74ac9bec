// SPDX-License-Identifier: Apache-2.0
//
// [ceilings] of the configuration: the most that any call through the daemon may have, whatever its manifest says.
//
// The warden enforces them, so they also bound a gateway that was broken into. Every ceiling has a default.
#pragma once

#include "policy/envelope.h"
#include "policy/manifest/table_reader.h"

namespace coffer::call {

// An hour of CPU and of time, 8 GiB of memory, 4096 processes, 64 GiB of disk; docs/OPERATIONS.md lists all.
policy::Limits DefaultCeilings();

// Reads [ceilings] of `root`, if it is there, over what `ceilings` holds.
void ReadCeilings(policy::TableReader& root, policy::Limits& ceilings,
                  policy::MistakeList& mistakes);

}  // namespace coffer::call
