// SPDX-License-Identifier: Apache-2.0
//
// The parts of a container's plan that lie in prepared trees (prepared_tree.h) instead of its private root, and how they
// get back there where a tree cannot be had.
#pragma once

#include <string>

#include "isolation/plan.h"

namespace coffer::isolation {

// The mount of a prepared tree, which the supervisor opens.
BindMount PreparedBind(const std::string& at);

// The directories, links and mount points below /usr: a shell has a hundred. Only what the runtime alone decides is
// prepared, so nothing is done if a mount of the caller's lies there, or if /usr is shown whole. Files that everybody can
// reach on the host are left to init, which is not root there: it mounts them by name, for half the price.
void PrepareUsr(BoundaryPlan& plan);

// There is no tree for this place after all: what it holds is made in the private root.
void MakePrivate(const PreparedPlace& place, BoundaryPlan& plan);

}  // namespace coffer::isolation
