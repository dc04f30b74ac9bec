// SPDX-License-Identifier: Apache-2.0
//
// How much a call may add to the workspace of its session.
//
// Where the session has a file system of its own the kernel says no, and a call has what its
// manifest allows. Elsewhere the session's files are summed before each call, and the call may add
// what is left of the session's size: the growth of a session over many calls is bounded like that
// of one. The sum is a watch, not a wall (limits/disk_quota.h).
#pragma once

#include <string>

#include "base/result.h"
#include "policy/envelope.h"
#include "store/session.h"

namespace coffer::call {

// Narrows `limits` to what is left. Refused if the session should have a file system of its own and
// it is not mounted here.
Status NarrowToWorkspace(const std::string& path, const store::Session& session,
                         policy::Limits& limits);

}  // namespace coffer::call
