// SPDX-License-Identifier: Apache-2.0
//
// The addresses of this host's interfaces: no name may lead a call back to them, whatever network they belong to.
//
// The supervisor lists them for each call: interfaces come and go, and the egress role's filter forbids asking the
// kernel.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace coffer::call {

// As policy::IpAddress reads them. kHost: they cannot be read, and so no call with network may start.
Result<std::vector<std::string>> OwnAddresses();

}  // namespace coffer::call
