// SPDX-License-Identifier: Apache-2.0
//
// The addresses of this host's interfaces: no name may lead a call back to them, whatever network they belong to.
//
// The supervisor looks, for each call: interfaces come and go, and the egress role may not ask the kernel about them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace coffer::call {

// As policy::IpAddress reads them. kHost: they cannot be read, and so no call with network may start.
Result<std::vector<std::string>> OwnAddresses();

}  // namespace coffer::call
