// SPDX-License-Identifier: Apache-2.0
//
// Moves what lies in a place that a boundary makes for itself (/tmp, /workspace, ...) to /run/command.
//
// A program or script of the caller's own may lie in the host's /tmp. At that path inside it would be covered by the
// private /tmp, or make a writable place executable. The path is kept below the new place, so what a program finds
// relative to itself ($ORIGIN, a virtual environment) is still there; what it finds there by absolute path is not. A loader
// below /tmp stays: the kernel finds it by the absolute path that the program names (PT_INTERP).
#pragma once

#include <string>

#include "isolation/runtime/runtime_set.h"

namespace coffer::isolation {

// "/tmp/x/tool" -> "/run/command/tmp/x/tool"; any other path as it is.
std::string Relocated(const std::string& path);
// The other way round: where the host has it.
std::string NotRelocated(const std::string& path);
RuntimeSet Relocated(RuntimeSet set);

}  // namespace coffer::isolation
