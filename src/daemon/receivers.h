// SPDX-License-Identifier: Apache-2.0
//
// The receivers of the configuration file, for the egress role: read at its start, while it still
// has the operator's rights.
#pragma once

#include <vector>

#include "base/result.h"
#include "daemon/config.h"
#include "egress/secrets.h"
#include "policy/ip_address.h"

namespace coffer::daemon {

struct Receivers {
  std::vector<egress::EgressReceiver> all;  // with what their secret files hold
  std::vector<policy::AddressRange>
      open;  // that their names may lead to beside the internet: dangerously_addresses
};
// None if there is no configuration file.
Result<Receivers> LoadReceivers(const Config& config);

}  // namespace coffer::daemon
