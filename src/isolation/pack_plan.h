// SPDX-License-Identifier: Apache-2.0
//
// Packs the halves of a plan into the blocks that init reads (child/plan_block.h).
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "isolation/call_block.h"
#include "isolation/plan.h"

namespace coffer::isolation {

// The first half. Only `root` of the block means something.
std::string PackRoot(const RootPart& root);

// The second half, with the call that it is for. Refused if the call is too large.
Result<std::string> PackCallPlan(const BoundaryPlan& plan, const Call& call);

// `bytes` in a memory file that can no longer be written, grown or shrunk. Close-on-exec.
Result<UniqueFd> SealInMemory(const std::string& bytes);

}  // namespace coffer::isolation
