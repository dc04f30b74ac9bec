// SPDX-License-Identifier: Apache-2.0
//
// A version manager's shim is a script that looks for the program that is meant. Inside a boundary it would need the
// manager and half of the home directory; so the program is looked for here, by the same rules.
//
// pyenv: $PYENV_VERSION, then .python-version in the working directory or above, then the manager's
// own `version` file. These files choose among the versions that are installed below the manager's
// directory, and nothing else: a version is one name without a slash. A .python-version that an
// earlier payload wrote can so choose another installed Python. Shims of managers that are not
// known here are passed over, and the search goes on along PATH.
#pragma once

#include <string>

namespace coffer::isolation {

// True if the directory of PATH holds shims.
bool IsShimDirectory(const std::string& directory);

// The program that the shim `name` in `directory` stands for; empty if there is none, or the system's own is meant.
std::string FindBehindShim(const std::string& directory, const std::string& name);

}  // namespace coffer::isolation
