// SPDX-License-Identifier: Apache-2.0
//
// From the shelf of tools to the table that the warden launches by (warden/table.h).
#pragma once

#include "call/tool_shelf.h"
#include "call/warden/table.h"

namespace coffer::call {

// Every tool of the shelf that can be called. A file that does not load now keeps the entry it has in `before`, as the
// shelf of the gateway keeps its last good version.
Result<WardenTable> MakeTable(const ToolShelf& shelf, const policy::Limits& ceilings,
                              const WardenTable& before);

}  // namespace coffer::call
