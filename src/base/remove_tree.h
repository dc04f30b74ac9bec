// SPDX-License-Identifier: Apache-2.0
//
// Removes a tree that a hostile program may have built: of any depth, with names of any length, with directories that
// are closed to their own owner.
//
// A subdirectory that is not empty is renamed into the top directory, so that the walk is never more than two levels
// deep. It needs three descriptors and the list of one directory at a time, and no path is ever put together. It
// follows no link and crosses no mount. Directories are opened to their owner (mode 0700) before they are read: by the
// descriptor that was opened, never by a name. The caller makes sure that nothing inside still runs.
#pragma once

#include <string>

#include "base/result.h"

namespace coffer {

// Removes the file or tree `name` in `parent`. No error if it is not there. On error what is left
// stays where it is, and may be tried again.
Status RemoveTree(int parent, const std::string& name);

// The same for everything inside `dir`, which stays.
Status EmptyTree(int dir);

}  // namespace coffer
