// SPDX-License-Identifier: Apache-2.0
//
// Why a boundary could not be made, in words: from what clone answered, and from what init wrote
// into its report before it gave up.
#pragma once

#include <string>

#include "base/result.h"
#include "isolation/child/report.h"
#include "isolation/plan.h"

namespace coffer::isolation {

// `answer` is clone's, below zero.
Error ExplainClone(long answer);

// A mount has to lie over `path`, which is not what it was when the supervisor examined it.
Error PlaceMoved(const std::string& path);

// The report comes from init, which may have been broken into, so every field may be wrong.
Error ExplainSetup(const ChildReport& report, const BoundaryPlan& plan);

}  // namespace coffer::isolation
