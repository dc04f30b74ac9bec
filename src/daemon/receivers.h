// SPDX-License-Identifier: Apache-2.0
//
// The receivers of the configuration file, for the egress role: read at its start, while it still
// has the operator's rights.
#pragma once

#include <vector>

#include "base/result.h"
#include "call/config_file.h"
#include "daemon/config.h"
#include "egress/address_guard.h"
#include "egress/secrets.h"

namespace coffer::daemon {

struct Receivers {
  std::vector<egress::EgressReceiver> all;  // with what their secret files hold
  egress::AddressGuard guard;               // before each of their addresses
};
// Opens the ranges of dangerously_addresses. `is_own_now` as AddressGuard has it.
Result<egress::AddressGuard> GuardOf(const call::FileConfig& file,
                                     egress::AddressGuard::IsOwn is_own_now = nullptr);
// None if there is no configuration file.
Result<Receivers> LoadReceivers(const Config& config);

}  // namespace coffer::daemon
