// SPDX-License-Identifier: Apache-2.0
//
// Whether the working directory will be there inside, asked before anything starts. Otherwise execve of the command
// would fail with "No such file or directory", and the command would get the blame.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "isolation/compose.h"

namespace coffer::call {

// kRefused if `cwd` is not a place that the boundary makes, a directory in a mount, or one of the runtime.
Status CheckWorkingDirectory(const std::string& cwd,
                             const std::vector<isolation::OpenedMount>& mounts,
                             const isolation::OpenedRuntime& runtime);

}  // namespace coffer::call
