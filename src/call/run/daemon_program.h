// SPDX-License-Identifier: Apache-2.0
//
// Finds `cofferd`. It links the libraries that `coffer` leaves out to start fast.
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
