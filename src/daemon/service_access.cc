// SPDX-License-Identifier: Apache-2.0
//
// The part of the service that is about access that calls ask for while they run.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "daemon/service.h"
#include "daemon/standing.h"
#include "daemon/views.h"
#include "daemon/visibility.h"

namespace coffer::daemon {
namespace {

gateway::Refusal UnknownAccess() {
  return {gateway::RefusalKind::kNotFound,
          "access.unknown",
          "no call waits for that",
          "GET /v1/access lists what waits; a request ends when its time is over",
          {},
          "",
          {},
          {}};
}

}  // namespace

std::vector<gateway::AccessView> DaemonService::AccessOf(const gateway::Identity& who) const {
  std::vector<gateway::AccessView> views;
  for (const auto& [id, flight] : calls_) {
    const store::CallIdentity& identity = flight.request.identity;
    if (flight.call == nullptr || !MaySee(who, identity.tenant, identity.agent)) {
      continue;
    }
    for (const egress::AccessNotice& notice : flight.call->waiting()) {
      gateway::AccessView view;
      view.id = fmt::format("{}.{}", id, notice.id);
      view.call_id = id;
      view.tenant = identity.tenant;
      view.tool = identity.tool;
      view.agent = identity.agent;
      view.host = Printable(notice.host);
      view.port = notice.port;
      view.opens = Printable(notice.opens);
      views.push_back(std::move(view));
    }
  }
  return views;
}

void DaemonService::TellAsked(const std::string& call_id, const egress::AccessNotice& notice) {
  const auto call = calls_.find(call_id);
  if (call == calls_.end()) {
    return;
  }
  const store::CallIdentity& identity = call->second.request.identity;
  const std::string tenant = identity.tenant.name();
  const std::map<std::string, std::string> detail = {
      {"access", fmt::format("{}.{}", call_id, notice.id)},
      {"call", call_id},
      {"tool", identity.tool},
      {"agent", identity.agent},
      {"host", Printable(notice.host)},
      {"port", fmt::to_string(notice.port)}};
  context_.workers().SubmitAlways(Lane{tenant, ""}, [this, tenant, detail] {
    (void)context_.recorder().Happened(tenant, "access.asked", detail);
  });
}

void DaemonService::ListAccess(const gateway::Identity& who,
                               gateway::Reply<std::vector<gateway::AccessView>> reply) {
  const auto standing = [this, who, reply](gateway::Answer<gateway::Nothing> answer) {
    if (answer.ok()) {
      reply(AccessOf(who));
    } else {
      reply(answer.refusal());
    }
  };
  AnswerIfStanding<gateway::Nothing>(context_, who,
                                     gateway::Reply<gateway::Nothing>(standing, reply.asker()),
                                     [] { return gateway::Nothing{}; });
}

void DaemonService::DecideAccess(const gateway::Identity& who, const std::string& access_id,
                                 gateway::AccessGrant decision,
                                 gateway::Reply<gateway::AccessView> reply) {
  const std::vector<gateway::AccessView> waiting = AccessOf(who);
  const auto found = std::find_if(waiting.begin(), waiting.end(),
                                  [&](const auto& one) { return one.id == access_id; });
  if (found == waiting.end()) {
    reply(UnknownAccess());
    return;
  }
  const gateway::AccessView view = *found;
  // Who opens it is on record before it is open.
  const auto record = [this, who, view, decision]() -> gateway::Answer<gateway::Nothing> {
    const Status told = context_.recorder().Event(
        view.tenant.name(), decision.grant ? "access.granted" : "access.denied",
        {{"by", who.key_id},
         {"call", view.call_id},
         {"host", view.host},
         {"port", fmt::to_string(view.port)},
         {"minutes",
          decision.grant && decision.minutes > 0 ? fmt::to_string(decision.minutes) : ""}});
    if (!told.ok()) {
      return RefusalOf(told.error());
    }
    return gateway::Nothing{};
  };
  const auto send = [this, who, view, decision,
                     reply](const gateway::Answer<gateway::Nothing>& recorded) {
    if (!recorded.ok()) {
      reply(recorded.refusal());
      return;
    }
    const auto call = calls_.find(view.call_id);
    call::AccessAnswer answer;
    answer.by = who.key_id;
    answer.decision.id = static_cast<uint32_t>(std::stoul(view.id.substr(view.id.rfind('.') + 1)));
    answer.decision.minutes = static_cast<uint32_t>(decision.minutes);
    answer.decision.choice = !decision.grant         ? egress::AccessChoice::kDeny
                             : decision.minutes == 0 ? egress::AccessChoice::kForCall
                                                     : egress::AccessChoice::kForMinutes;
    if (call == calls_.end() || call->second.call == nullptr ||
        !call->second.call->Answer(answer)) {
      reply(UnknownAccess());
      return;
    }
    reply(view);
  };
  AnswerIfStanding<gateway::Nothing>(context_, who,
                                     gateway::Reply<gateway::Nothing>(send, reply.asker()), record);
}

}  // namespace coffer::daemon
