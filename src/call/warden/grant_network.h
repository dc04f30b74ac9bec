// SPDX-License-Identifier: Apache-2.0
//
// Makes the grants of the egress process (policy/egress_texts.h) from the network of an envelope that was checked.
//
// Everything but the choice of rules comes from the table: the rules of a set, where names lead,
// which addresses are open, which certificates are trusted. So a gateway that was broken into can
// leave rules out and do nothing else.
#pragma once

#include "base/result.h"
#include "call/run/run_request.h"
#include "call/warden/table.h"

namespace coffer::call {

// Sets `request.egress`. After CheckRequest. Refused if a set is not in the configuration.
Status GrantNetwork(const WardenTable& table, RunRequest& request);

}  // namespace coffer::call
