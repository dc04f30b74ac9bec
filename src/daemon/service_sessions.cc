// SPDX-License-Identifier: Apache-2.0
//
// The part of the service that is about sessions.
#include <fmt/format.h>

#include <algorithm>

#include "base/print.h"
#include "base/quantity.h"
#include "call/warden/volumes.h"
#include "daemon/service.h"
#include "daemon/standing.h"
#include "daemon/views.h"
#include "daemon/visibility.h"
#include "daemon/workspace.h"
#include "limits/volume.h"
#include "store/session.h"

namespace coffer::daemon {
namespace {

using gateway::Refusal;
using gateway::RefusalKind;

// Not shortened in silence: a client that plans with its own figure would lose its files before it expects to.
Refusal TooLong(Nanos longest) {
  Refusal refusal;
  refusal.kind = RefusalKind::kInvalid;
  refusal.code = "body.invalid";
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(longest).count();
  refusal.message = fmt::format("/lifetime_seconds must be at most {}", seconds);
  refusal.hint = "a session can be made again, or extended, before it ends";
  refusal.details = {{"/lifetime_seconds", fmt::format("must be at most {}", seconds)}};
  return refusal;
}

}  // namespace

void DaemonService::CreateSession(const gateway::Identity& who, gateway::SessionRequest request,
                                  gateway::Reply<gateway::SessionView> reply) {
  AnswerIfStanding<gateway::SessionView>(
      context_, who, std::move(reply),
      [this, who, request = std::move(request)]() -> gateway::Answer<gateway::SessionView> {
        if (const Status room = context_.reserve.CheckRoom(); !room.ok()) {
          return Full(room.error());
        }
        store::SessionRequest asked;
        asked.agent = who.agent;
        if (request.lifetime && *request.lifetime > options_.longest_session) {
          return TooLong(options_.longest_session);
        }
        if (request.lifetime) {
          asked.lifetime = *request.lifetime;
        }
        asked.label = request.label;
        const std::shared_ptr<const call::FileConfig> config = context_.live_config.current();
        const call::TenantRules& rules = config->RulesOf(who.tenant);
        // What the operator allows a session, or less.
        asked.budget = rules.session_budget;
        if (const uint64_t calls = request.max_calls.value_or(0);
            calls != 0 && (asked.budget.calls == 0 || calls < asked.budget.calls)) {
          asked.budget.calls = calls;
        }
        asked.bytes = rules.storage.session;
        asked.tenant_bytes = rules.storage.SessionsTogether(context_.reserve.disk_bytes());
        return MakeSession(who, asked);
      });
}

// First the row, then the directory: a sweep removes directories without a row.
gateway::Answer<gateway::SessionView> DaemonService::MakeSession(
    const gateway::Identity& who, const store::SessionRequest& asked) {
  Result<store::Session> session = store::CreateSession(context_.store(), who.tenant, asked);
  if (!session.ok()) {
    Refusal refusal = RefusalOf(session.error());
    refusal.kind =
        session.error().code == "policy.storage" ? RefusalKind::kRateLimited : refusal.kind;
    return refusal;
  }
  Status made = Workspace(context_.sessions, session->workspace).Make();
  if (made.ok() && volumes_ok_) {
    made = call::AskForVolume(context_.warden, call::WardenVerb::kOpenVolume, session->id,
                              session->bytes);
    if (made.ok()) {
      made = store::MarkEnforced(context_.store(), who.tenant, session->id);
      session->enforced = true;
    } else if (made.error().code == limits::kNoVolumes) {
      volumes_ok_ = false;
      PrintError(
          fmt::format("coffer: note: the size of sessions is watched, not enforced by the "
                      "kernel: {}",
                      made.error().message));
      made = Status();
    }
  }
  if (!made.ok()) {
    if (const Result<store::EndedSession> ended =
            store::EndSession(context_.store(), who.tenant, session->id, "no workspace");
        ended.ok()) {
      AfterEnd(*ended, "no workspace");
    }
    return RefusalOf(made.error());
  }
  return ShowSession(*session);
}

// An ended session is gone when its files are.
gateway::SessionView DaemonService::ShowSession(const store::Session& session) const {
  gateway::SessionView view = ViewOf(session);
  view.max_bytes = session.bytes;
  view.max_files = limits::VolumeFiles(session.bytes);
  view.enforced = session.enforced;
  view.time_left = session.ends_at - context_.store().Now();
  if (session.ended_at && Workspace(context_.sessions, session.workspace).Exists()) {
    view.state = "ending";
  }
  return view;
}

void DaemonService::ListSessions(const gateway::Identity& who, gateway::PageRequest page,
                                 gateway::Reply<gateway::Page<gateway::SessionView>> reply) {
  using Views = gateway::Page<gateway::SessionView>;
  Answer<Views>(context_, std::move(reply), [this, who, page]() -> gateway::Answer<Views> {
    const store::PageRequest asked{page.limit, page.cursor};
    constexpr auto kAll = store::SessionFilter::kAll;
    Result<store::Page<store::Session>> sessions =
        who.all_tenants ? store::ListSessions(context_.store(), store::AllTenants{}, kAll, asked)
                        : store::ListSessions(context_.store(), who.tenant, kAll, asked);
    if (!sessions.ok()) {
      return RefusalOf(sessions.error());
    }
    Views views;
    for (const store::Session& session : sessions->rows) {
      if (MaySee(who, session.tenant, session.agent)) {
        views.items.push_back(ShowSession(session));
      }
    }
    views.next = sessions->next;
    return views;
  });
}

void DaemonService::GetSession(const gateway::Identity& who, const std::string& session_id,
                               gateway::Reply<gateway::SessionView> reply) {
  Answer<gateway::SessionView>(context_, std::move(reply),
                               [this, who, session_id]() -> gateway::Answer<gateway::SessionView> {
                                 gateway::Answer<store::Session> session =
                                     FindVisibleSession(context_.store(), who, session_id);
                                 if (!session.ok()) {
                                   return session.refusal();
                                 }
                                 return ShowSession(session.value());
                               });
}

void DaemonService::ExtendSession(const gateway::Identity& who, const std::string& session_id,
                                  std::chrono::seconds lifetime,
                                  gateway::Reply<gateway::SessionView> reply) {
  AnswerIfStanding<gateway::SessionView>(
      context_, who, std::move(reply),
      [this, who, session_id, lifetime]() -> gateway::Answer<gateway::SessionView> {
        const gateway::Answer<store::Session> session =
            FindVisibleSession(context_.store(), who, session_id);
        if (!session.ok()) {
          return session.refusal();
        }
        if (lifetime > options_.longest_session) {
          return TooLong(options_.longest_session);
        }
        const Result<std::optional<store::Session>> extended = store::ExtendSession(
            context_.store(), session->tenant, session_id, lifetime, options_.oldest_session);
        if (!extended.ok()) {
          return RefusalOf(extended.error());
        }
        if (!*extended) {
          return Refusal{.kind = RefusalKind::kConflict,
                         .code = "session.ended",
                         .message = "the session has ended",
                         .hint = "begin another"};
        }
        return ShowSession(**extended);
      });
}

void DaemonService::EndSession(const gateway::Identity& who, const std::string& session_id,
                               gateway::Reply<gateway::SessionView> reply) {
  AnswerIfStanding<gateway::SessionView>(
      context_, who, std::move(reply),
      [this, who, session_id]() -> gateway::Answer<gateway::SessionView> {
        gateway::Answer<store::Session> session =
            FindVisibleSession(context_.store(), who, session_id);
        if (!session.ok()) {
          return session.refusal();
        }
        Result<store::EndedSession> ended = store::EndSession(context_.store(), session->tenant,
                                                              session_id, "ended by " + who.agent);
        if (!ended.ok()) {
          return RefusalOf(ended.error());
        }
        AfterEnd(*ended, who.user.empty() ? who.agent : who.user);
        return ShowSession(ended->session);
      });
}

}  // namespace coffer::daemon
