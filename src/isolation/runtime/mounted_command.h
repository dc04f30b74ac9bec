// SPDX-License-Identifier: Apache-2.0
//
// A command that lies in a mount of the call is run where it is: nothing is brought in for it but what its link leads to.
//
//   coffer run --ro ~/proj/.venv:/venv -- /venv/bin/python
//
// The path is the one inside. It is looked at on the host only to say early that it is missing or not executable; what
// execve finds inside is what counts. If it is a link that leads out of the mount and out of the runtimes, as the Python
// of a virtual environment may, the interpreter behind it is resolved like any that a file names (opened_runtime.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "isolation/runtime/runtime.h"

namespace coffer::isolation {

// Where the host's `path` is inside, if a mount shows it.
std::optional<std::string> InsideOf(const std::string& host,
                                    const std::vector<MountedPlace>& mounts);
// Where the host has `inside`, if a mount shows it.
std::optional<std::string> HostOf(const std::string& inside,
                                  const std::vector<MountedPlace>& mounts);

// Sets `program` of the command, whose set is there already, and adds to the set. kNotFound, kNotExecutable.
Status UseMounted(const std::string& inside, const std::string& host, const ResolveOptions& options,
                  Command& command);

}  // namespace coffer::isolation
