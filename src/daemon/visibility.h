// SPDX-License-Identifier: Apache-2.0
//
// What an identity may look at, decided in one place: an agent its own calls and sessions, the other roles those of
// their tenant, and an operator or auditor who was granted it those of every tenant.
//
// What may not be seen does not exist: the answer is the same whether it belongs to another or does not exist.
#pragma once

#include <string>

#include "gateway/service.h"
#include "store/call.h"
#include "store/session.h"
#include "store/store.h"

namespace coffer::daemon {

gateway::Refusal UnknownCall();
gateway::Refusal UnknownSession();

bool MaySee(const gateway::Identity& who, const store::TenantId& tenant, const std::string& agent);

gateway::Answer<store::Call> FindVisibleCall(store::Store& store, const gateway::Identity& who,
                                             const std::string& call_id);
gateway::Answer<store::Session> FindVisibleSession(store::Store& store,
                                                   const gateway::Identity& who,
                                                   const std::string& session_id);

}  // namespace coffer::daemon
