// SPDX-License-Identifier: Apache-2.0
//
// Whether this host could start a tool at all: its runtimes are known and installed, its program is in them, and its
// limits are large enough. Nothing is started. What is found here would otherwise be found by the first call.
//
// The program is looked for as a call would look for it (isolation/runtime/runtime.h). A manifest whose program is a
// parameter cannot be asked.
#pragma once

#include <vector>

#include "policy/manifest/manifest.h"
#include "policy/manifest/mistake.h"

namespace coffer::call {

std::vector<policy::Mistake> CheckToolOnHost(const policy::Manifest& manifest);

}  // namespace coffer::call
