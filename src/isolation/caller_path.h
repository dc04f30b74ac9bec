// SPDX-License-Identifier: Apache-2.0
//
// A path in the caller's own words, as a person types it: "../data", or through a link. It is resolved here, once, to a
// path without links; host_path.h then opens that path without following any, so what changes between the two is
// refused.
//
// A link is a file, and files in a project may be an earlier payload's work. So it is followed only
//   - where root alone could have made it, for any purpose;
//   - for reading, if it belongs to the caller and does not lead into a hidden directory (~/.ssh, ~/.config/...);
//   - for writing, if it belongs to the caller and stays below the directory that holds it.
// Otherwise the caller is told the real path, and can name that.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/envelope.h"

namespace coffer::isolation {

struct CallerPath {
  std::string path;                // absolute, without "..", and without links as far as it exists
  std::vector<std::string> links;  // the links of the caller's that were followed, absolute
};

Result<CallerPath> ResolveCallerPath(std::string_view given, policy::Access access);

}  // namespace coffer::isolation
