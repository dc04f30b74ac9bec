// SPDX-License-Identifier: Apache-2.0
//
// The part of a container's plan that becomes /etc: what etc.h makes up, and what the runtime's own start needs.
#pragma once

#include "isolation/directory_list.h"
#include "isolation/plan.h"
#include "isolation/runtime/runtime_set.h"

namespace coffer::isolation {

// Into the plan's prepared trees if it has them, otherwise into its private root.
void AddEtc(const RuntimeSet& runtime, BoundaryPlan& plan, DirectoryList& dirs);

}  // namespace coffer::isolation
