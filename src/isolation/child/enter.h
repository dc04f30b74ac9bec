// SPDX-License-Identifier: Apache-2.0
//
// The whole order of confinement, as one ladder. Called right after clone, never returns.
#pragma once

#include <cstddef>

#include "isolation/child/plan_block.h"
#include "isolation/child/report.h"
#include "isolation/plan.h"

namespace coffer::isolation {

struct ChildContext {
  const BoundaryStart* plan = nullptr;
  const PlanBlock* root = nullptr;  // plan->root, packed
  ChildReport* report = nullptr;
  const BoundaryAdmission* admission = nullptr;
  int control = -1;
  int supervisor = -1;    // pidfd of the supervisor: readable once it is dead
  char* words = nullptr;  // the supervisor's own command line and environment, wiped in the child
  size_t words_size = 0;
};

[[noreturn]] void EnterBoundary(const ChildContext& context);

}  // namespace coffer::isolation
