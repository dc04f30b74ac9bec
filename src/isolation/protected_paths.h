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

// The places in `own` need not exist: what is made later is found by name, also behind a link that leads nowhere yet.
Status CheckShowsNone(const HostPath& mount, policy::Access access,
                      std::span<const std::string> own);

// `receipt` is the path of a receipt that is still to be written, as given. A call that can write
// to its directory could keep it from being written.
Status CheckReceiptOutside(const HostPath& mount, const std::string& receipt);

}  // namespace coffer::isolation
