// SPDX-License-Identifier: Apache-2.0
//
// The caller's PATH, as far as the call's mounts have it: `coffer run --project . -- make test` in an activated environment.
//
// Directories of the caller's PATH that lie in the project (.venv/bin, node_modules/.bin), or in a mount at its own place
// (--ro "$VIRTUAL_ENV"), are on PATH inside. If the caller's python3 or node is a version manager's, or the environment's in the
// project leads to one, it comes in as well. So does the one that .venv or venv at the project's top
// leads to: `uv run` and Makefiles name it by its path, in an environment that is not activated. It
// is judged as if a file had named it (opened_runtime.h): the system's own, or in a toolchain. What
// may not be shown is left out, and the call has the interpreter of /usr.
#pragma once

#include <string>
#include <vector>

#include "call/run/run_request.h"
#include "isolation/opened_runtime.h"
#include "isolation/runtime/runtime.h"

namespace coffer::call {

// Adds to the set of `command`, and answers names inside whose directories come first on PATH, the first one first.
std::vector<std::string> AddProjectPath(const RunRequest& request,
                                        const isolation::RuntimeGrounds& grounds,
                                        const isolation::ResolveOptions& options,
                                        isolation::Command& command);

}  // namespace coffer::call
