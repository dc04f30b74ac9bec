// SPDX-License-Identifier: Apache-2.0
#include "daemon/visibility.h"

#include "daemon/service_context.h"
#include "store/call_list.h"

namespace coffer::daemon {
namespace {

using gateway::Refusal;
using gateway::RefusalKind;

// Found in the identity's tenant, or in any if it may look there.
template <typename T, typename FindOne, typename FindAny, typename MaySeeIt>
gateway::Answer<T> FindVisible(const gateway::Identity& who, const FindOne& find_one,
                               const FindAny& find_any, const MaySeeIt& may_see,
                               const Refusal& unknown) {
  Result<std::optional<T>> found = who.all_tenants ? find_any() : find_one();
  if (!found.ok()) {
    return RefusalOf(found.error());
  }
  if (!*found || !may_see(**found)) {
    return unknown;
  }
  return std::move(**found);
}

}  // namespace

Refusal UnknownCall() {
  return {RefusalKind::kNotFound, "call.unknown", "there is no such call", "", {}, "", {}};
}

Refusal UnknownSession() {
  return {RefusalKind::kNotFound, "session.unknown", "there is no such session", "", {}, "", {}};
}

bool MaySee(const gateway::Identity& who, const store::TenantId& tenant, const std::string& agent) {
  if (tenant != who.tenant) {
    return who.all_tenants;
  }
  return who.role != store::Role::kAgent || agent == who.agent;
}

gateway::Answer<store::Call> FindVisibleCall(store::Store& store, const gateway::Identity& who,
                                             const std::string& call_id) {
  return FindVisible<store::Call>(
      who, [&] { return store::FindCall(store, who.tenant, call_id); },
      [&] { return store::FindCall(store, store::AllTenants{}, call_id); },
      [&](const store::Call& call) {
        return MaySee(who, call.identity.tenant, call.identity.agent);
      },
      UnknownCall());
}

gateway::Answer<store::Session> FindVisibleSession(store::Store& store,
                                                   const gateway::Identity& who,
                                                   const std::string& session_id) {
  return FindVisible<store::Session>(
      who, [&] { return store::FindSession(store, who.tenant, session_id); },
      [&] { return store::FindSession(store, store::AllTenants{}, session_id); },
      [&](const store::Session& session) { return MaySee(who, session.tenant, session.agent); },
      UnknownSession());
}

}  // namespace coffer::daemon
