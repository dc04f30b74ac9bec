// SPDX-License-Identifier: Apache-2.0
//
// Directories that Cofferdam itself trusts: the state directory (keys, log, store) and the cache of runtimes, which
// decides which files of the host the next boundary sees. A payload that could write there could widen every later
// call, so no mount may show one of them, be it as it is, a part of it, or something around it, by whatever name. Nor
// may a writable mount hold a link on the way to one of them, or the place where such a link leads: replaced, it would
// lead elsewhere.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "isolation/host_path.h"

namespace coffer::isolation {

// The paths in `protected_paths` need not exist: what is made later is found by name, also behind a link that leads nowhere yet.
Status CheckShowsNone(const HostPath& mount, policy::Access access,
                      std::span<const std::string> protected_paths);

// True if what `held` stands for can be reached in the mount: it lies there, or the mount lies in it. By number too, so
// also through a bind mount. Both were opened without links; of a link it is the link itself that counts.
bool Reaches(const HostPath& mount, const HostPath& held);

// `receipt` is the path of a receipt that is still to be written, as given. A call that can write
// to its directory could keep it from being written.
Status CheckReceiptOutside(const HostPath& mount, const std::string& receipt);

}  // namespace coffer::isolation
