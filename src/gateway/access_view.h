// SPDX-License-Identifier: Apache-2.0
//
// Access to hosts that calls wait for, as operators see it and decide about it.
#pragma once

#include <cstdint>
#include <string>

#include "store/tenant_id.h"

namespace coffer::gateway {

// Access to a host that a call waits for (network.allow.ask).
struct AccessView {
  std::string id;  // of the call and its request: "CALL.1"
  std::string call_id;
  store::TenantId tenant = store::TenantId::None();
  std::string tool;
  std::string agent;
  std::string host;
  uint64_t port = 0;
  std::string opens;  // what a grant opens, as --allow would write it
};
struct AccessGrant {
  bool grant = false;
  uint64_t minutes = 0;  // of a grant: 0 is for the call
};

}  // namespace coffer::gateway
