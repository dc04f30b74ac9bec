// SPDX-License-Identifier: Apache-2.0
//
// The part of the service that is about the record.
#include "base/moment.h"
#include "daemon/service.h"
#include "store/call_list.h"

namespace coffer::daemon {
namespace {

gateway::Refusal Wrong(std::string message) {
  gateway::Refusal refusal;
  refusal.kind = gateway::RefusalKind::kInvalid;
  refusal.code = "query.invalid";
  refusal.message = std::move(message);
  return refusal;
}

gateway::AuditView SealedView(const audit::SealedCall& sealed) {
  const store::Call& call = sealed.call;
  gateway::AuditView view;
  view.seal = audit::SealStateName(sealed.state);
  view.identity = call.identity;
  view.state = store::CallStateName(call.state);
  view.outcome = call.outcome ? store::OutcomeName(*call.outcome) : "";
  view.error_class = call.error_class;
  view.denials = call.denials;
  view.approval = call.approval;
  view.requested_at = call.requested_at;
  view.finished_at = call.finished_at.value_or(Nanos(0));
  view.log_index = call.log_index;
  return view;
}

// What one may see is decided before what one asked for.
Result<store::Page<store::Call>> List(store::Store& store, const gateway::Identity& who,
                                      const gateway::AuditQuery& query,
                                      const store::CallFilter& filter) {
  const store::PageRequest page{query.page.limit, query.page.cursor};
  // An agent sees its own calls, whatever it asks for.
  if (who.role == store::Role::kAgent && (filter.agent != who.agent || who.all_tenants)) {
    return store::Page<store::Call>();
  }
  if (who.all_tenants && query.tenant.empty()) {
    return store::ListCalls(store, store::AllTenants{}, filter, page);
  }
  if (query.tenant.empty() || query.tenant == who.tenant.name()) {
    return store::ListCalls(store, who.tenant, filter, page);
  }
  if (!who.all_tenants) {
    return store::Page<store::Call>();  // as if there were no such tenant
  }
  TRY_ASSIGN(const store::TenantId tenant, store::TenantId::Parse(query.tenant));
  return store::ListCalls(store, tenant, filter, page);
}

}  // namespace

void DaemonService::ListAudit(const gateway::Identity& who, gateway::AuditQuery query,
                              gateway::Reply<gateway::Page<gateway::AuditView>> reply) {
  store::CallFilter filter;
  filter.tool = query.tool;
  filter.agent = query.agent;
  if (who.role == store::Role::kAgent && query.agent.empty()) {
    filter.agent = who.agent;
  }
  filter.session_id = query.session_id;
  filter.trace_id = query.trace_id;
  filter.error_class = query.error_class;
  filter.approval = query.approval;
  filter.denied = query.denied;
  if (!query.outcome.empty()) {
    filter.outcome = store::FindOutcome(query.outcome);
    if (!filter.outcome) {
      reply(Wrong("outcome is one of success, error, denied, gated, terminated, unknown"));
      return;
    }
  }
  const Nanos now = WallTime();
  for (const auto& [text, field] :
       {std::pair(&query.since, &filter.since), std::pair(&query.until, &filter.until)}) {
    if (text->empty()) {
      continue;
    }
    const Result<Nanos> moment = ParseMoment(*text, now);
    if (!moment.ok()) {
      reply(Wrong(moment.error().message));
      return;
    }
    *field = *moment;
  }
  Answer<gateway::Page<gateway::AuditView>>(
      context_, std::move(reply),
      [this, who, query = std::move(query),
       filter]() -> gateway::Answer<gateway::Page<gateway::AuditView>> {
        const Result<store::Page<store::Call>> calls = List(context_.store(), who, query, filter);
        if (!calls.ok()) {
          return RefusalOf(calls.error());
        }
        gateway::Page<gateway::AuditView> page;
        for (const store::Call& row : calls->rows) {
          const Result<audit::SealedCall> sealed = context_.recorder().ReadSealed(row);
          if (!sealed.ok()) {
            return RefusalOf(sealed.error());
          }
          page.items.push_back(SealedView(*sealed));
        }
        page.next = calls->next;
        return page;
      });
}

void DaemonService::GetCheckpoint(const gateway::Identity& /*who*/,
                                  gateway::Reply<gateway::CheckpointView> reply) {
  Answer<gateway::CheckpointView>(
      context_, std::move(reply), [this]() -> gateway::Answer<gateway::CheckpointView> {
        audit::Log& log = context_.recorder().log();
        Result<std::string> note = log.Checkpoint();
        if (!note.ok()) {
          return RefusalOf(note.error());
        }
        return gateway::CheckpointView{std::move(note).value(), log.public_key().Text()};
      });
}

}  // namespace coffer::daemon
