// SPDX-License-Identifier: Apache-2.0
//
// CallIdentity: who asked for what, under which ids. One value for the whole life of a call.
//
// The channel (a key, a socket's peer, the terminal) fills in tenant, agent and user; the request
// names the tool, session, parent and trace; admission adds the call's id. From then on the value
// is copied as a whole: the request, the row in the store, the receipt, the records of the log and
// the views hold it, and no part of it is merged back later. How a call went is not here.
#pragma once

#include <string>

#include "store/tenant_id.h"

namespace coffer::store {

struct CallIdentity {
  std::string call_id;     // empty: not admitted yet
  std::string parent_id;   // empty: none
  std::string session_id;  // empty: none
  TenantId tenant = TenantId::Local();
  std::string agent;  // empty: a person at a terminal
  std::string user;
  std::string tool;
  std::string trace_id;     // W3C trace context, 32 hexadecimal digits; empty: none
  std::string parent_span;  // of the same, 16; the store does not keep it
  std::string reason;       // what the agent says it is for (policy/reason.h); it decides nothing
  bool operator==(const CallIdentity&) const = default;
};

}  // namespace coffer::store
