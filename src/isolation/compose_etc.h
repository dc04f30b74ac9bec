// SPDX-License-Identifier: Apache-2.0
//
// Files of /etc that depend on the runtime: the loader's cache and the time zone. The rest of /etc is in etc.h.
#pragma once

#include <vector>

#include "isolation/plan.h"
#include "isolation/runtime/runtime_set.h"

namespace coffer::isolation {

// A single program with its libraries needs none of them, and each costs every call some 10 us.
std::vector<PrivateFile> RuntimeEtc(const RuntimeSet& runtime);

// Public files of the host that most programs of a runtime look for: its certificates, and the
// locale C.UTF-8 where it is kept as files. Added where the host has them; each is shown only if it
// is the system's own.
void AddPublicFiles(RuntimeSet& runtime);

}  // namespace coffer::isolation
