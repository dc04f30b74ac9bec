// SPDX-License-Identifier: Apache-2.0
#include "daemon/visibility.h"

#include "daemon/service_context.h"
#include "store/call_list.h"

namespace coffer::daemon {
namespace {

using gateway::Refusal;
using gateway::RefusalKind;

// Found in the identity's tenant, or in any if it may look there.
template <typename T, typename FindOne, typename FindAny>
gateway::Answer<T> FindVisible(const gateway::Identity& who, const FindOne& find_one,
                               const FindAny& find_any, const Refusal& unknown) {
  const Result<store::TenantId> tenant = store::TenantId::Parse(who.tenant);
  if (!tenant.ok()) {
    return unknown;
  }
  Result<std::optional<T>> found = who.all_tenants ? find_any() : find_one(*tenant);
  if (!found.ok()) {
    return RefusalOf(found.error());
  }
  if (!*found || !MaySee(who, (*found)->tenant.name(), (*found)->agent)) {
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

bool MaySee(const gateway::Identity& who, const std::string& tenant, const std::string& agent) {
  if (tenant != who.tenant) {
    return who.all_tenants;
  }
  return who.role != gateway::Role::kAgent || agent == who.agent;
}

gateway::Answer<store::Call> FindVisibleCall(store::Store& store, const gateway::Identity& who,
                                             const std::string& call_id) {
  return FindVisible<store::Call>(
      who, [&](const store::TenantId& tenant) { return store::FindCall(store, tenant, call_id); },
      [&] { return store::FindCall(store, store::AllTenants{}, call_id); }, UnknownCall());
}

gateway::Answer<store::Session> FindVisibleSession(store::Store& store,
                                                   const gateway::Identity& who,
                                                   const std::string& session_id) {
  return FindVisible<store::Session>(
      who,
      [&](const store::TenantId& tenant) { return store::FindSession(store, tenant, session_id); },
      [&] { return store::FindSession(store, store::AllTenants{}, session_id); }, UnknownSession());
}

}  // namespace coffer::daemon
