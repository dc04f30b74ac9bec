// SPDX-License-Identifier: Apache-2.0
#include "cli/audit_flags.h"

#include <fmt/format.h>

#include "base/moment.h"
#include "base/text.h"

namespace coffer::cli {

Result<AuditFilter> ReadAuditFilter(const call::VerbFlags& flags) {
  AuditFilter filter;
  const Nanos now = WallTime();
  if (flags.Has("--tenant")) {
    TRY_ASSIGN(filter.tenant, store::TenantId::Parse(flags.Value("--tenant")));
  }
  filter.calls.tool = flags.Value("--tool");
  filter.calls.agent = flags.Value("--agent");
  filter.calls.session_id = flags.Value("--session");
  filter.calls.error_class = flags.Value("--class");
  filter.calls.trace_id = flags.Value("--trace");
  filter.calls.approval = flags.Value("--approval");
  filter.calls.denied = flags.Has("--denied");
  filter.calls.probed = flags.Has("--probed");
  if (flags.Has("--outcome")) {
    filter.calls.outcome = store::FindOutcome(flags.Value("--outcome"));
    if (!filter.calls.outcome) {
      return Refused("policy.usage",
                     "--outcome takes one of success, error, denied, gated, terminated, unknown");
    }
  }
  if (flags.Has("--since")) {
    TRY_ASSIGN(filter.calls.since, ParseMoment(flags.Value("--since"), now));
  }
  if (flags.Has("--until")) {
    TRY_ASSIGN(filter.calls.until, ParseMoment(flags.Value("--until"), now));
  }
  return filter;
}

Result<store::Page<store::Call>> ListFiltered(store::Store& store, const AuditFilter& filter,
                                              const store::PageRequest& page) {
  return filter.tenant ? store::ListCalls(store, *filter.tenant, filter.calls, page)
                       : store::ListCalls(store, store::AllTenants{}, filter.calls, page);
}

Result<store::Call> FindAnyCall(store::Store& store, const std::string& id) {
  TRY_ASSIGN(const std::vector<store::Tenant> tenants,
             store::ListTenants(store, store::AllTenants{}));
  for (const store::Tenant& tenant : tenants) {
    TRY_ASSIGN(std::optional<store::Call> call, store::FindCall(store, tenant.id, id));
    if (call) {
      return std::move(*call);
    }
  }
  return Refused("policy.call", "there is no call " + Printable(id),
                 "`coffer audit list` names them");
}

}  // namespace coffer::cli
