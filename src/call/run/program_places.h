// SPDX-License-Identifier: Apache-2.0
//
// Where a command may lie beside the runtimes: in a mount of the call, or in a directory of the caller's own.
#pragma once

#include <string>
#include <vector>

#include "isolation/runtime/runtime.h"
#include "policy/envelope.h"

namespace coffer::call {

// The mounts of an envelope by name; each is opened and judged where it is mounted.
std::vector<isolation::MountedPlace> MountedPlaces(const policy::Envelope& envelope);

// True if the set has files outside /usr and /etc: the caller's own.
bool HoldsMoreThanUsr(const isolation::RuntimeSet& set);

// Puts the directory of `program` first on PATH: what a program of the caller's own starts by name
// is looked for beside it, as on the host. Nothing changes for a program of /usr, and a PATH that
// the caller gave stays as it is.
void AddToPath(const std::string& program, const policy::Envelope& envelope,
               std::vector<std::string>& env);

}  // namespace coffer::call
