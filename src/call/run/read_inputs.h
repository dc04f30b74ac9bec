// SPDX-License-Identifier: Apache-2.0
//
// Files that a call gets as copies: its script, and those of --in. Each is examined before it is read, and has at most 64 MiB.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "isolation/compose.h"
#include "isolation/opened_runtime.h"

namespace coffer::call {

// For a script that is not there.
inline constexpr const char* kCommandHint =
    "to run a command instead of a file, write: coffer run -- CMD ARG...";

// The script may be behind a link, as a program may: where the link leads is judged in the same way.
Result<isolation::Input> ReadScript(const std::string& path,
                                    const isolation::RuntimeGrounds& grounds);
// Adds them to `inputs`. No two may have the same name.
Status ReadInputs(const std::vector<std::string>& paths, std::vector<isolation::Input>& inputs);

}  // namespace coffer::call
