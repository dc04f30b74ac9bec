// SPDX-License-Identifier: Apache-2.0
//
// Descriptors that were sent through a UNIX socket and not received yet: no process has them in its
// table, and what they refer to lives on. The kernel says how many a socket holds (scm_fds in
// fdinfo, Linux 5.6) and shows copies of those in the first message that has any to a reader that
// peeks; the queue stays as it is. The copies are hostile: look at them with fstat, and at nothing
// else.
#pragma once

#include <vector>

#include "base/unique_fd.h"

namespace coffer::limits {

// `socket` is a descriptor of our own. Empty if there is nothing, or it cannot be seen.
std::vector<UniqueFd> PeekAtFlights(int socket);

}  // namespace coffer::limits
