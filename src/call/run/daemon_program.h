// SPDX-License-Identifier: Apache-2.0
//
// Where `cofferd` is, which has the libraries that `coffer` is too lean for.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace coffer::call {

// Beside this executable, or where `make install` puts it. The first that can be executed is the one.
Result<std::vector<std::string>> DaemonPlaces();

// These and this executable: no call may write them.
Result<std::vector<std::string>> OwnPrograms();

}  // namespace coffer::call
