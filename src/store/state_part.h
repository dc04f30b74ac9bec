// SPDX-License-Identifier: Apache-2.0
//
// The parts of the state directory are opened without following links: `log`, `sessions`, `coffer.db`, `owners`.
//
// As root the state directory belongs to the daemon's gateway, which has no privilege. A link in it
// would make a process that opens it with more rights (`coffer call` as root, the monitor) write
// where the link leads. Where the state directory itself is, its operator decides; that may be
// behind a link.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace coffer::store {

// Opens `name` below `directory` with O_NOFOLLOW added. A link is refused with the code store.link and what to do.
Result<UniqueFd> OpenStatePart(int directory, const std::string& name, int flags,
                               unsigned mode = 0);

// Refuses a link in the place of `name`; that nothing is there is good. For names that other code opens, without links.
Status CheckStatePart(const std::string& directory, const std::string& name);

}  // namespace coffer::store
