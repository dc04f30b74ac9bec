// SPDX-License-Identifier: Apache-2.0
//
// The part of the service that is about calls.
#include <fmt/format.h>

#include <algorithm>

#include "base/print.h"
#include "call/outer_call.h"
#include "daemon/service.h"
#include "daemon/standing.h"
#include "daemon/views.h"
#include "daemon/visibility.h"
#include "store/call.h"
#include "store/session.h"
#include "store/tenant.h"

namespace coffer::daemon {
namespace {

constexpr size_t kRecentCalls = 256;
constexpr size_t kRecentBytes = 8 << 20;

call::ToolRequest RequestOf(const gateway::Identity& who, gateway::CallRequest&& request) {
  call::ToolRequest made;
  made.identity.tenant = who.tenant;
  made.identity.agent = who.agent;
  made.identity.user = who.user;
  made.key_id = who.key_id;
  if (who.role != store::Role::kAgent && who.role != store::Role::kOperator) {
    made.role_denied = store::RoleName(who.role);
  }
  made.identity.tool = std::move(request.tool);
  made.args_json = std::move(request.args_json);
  made.identity.session_id = request.session_id.value_or("");
  made.identity.parent_id = request.parent_id.value_or("");
  made.idempotency_key = request.idempotency_key.value_or("");
  made.dry_run = request.dry_run;
  made.background = request.background;
  made.ports = std::move(request.ports);
  made.limits_json = std::move(request.limits_json);
  made.without_network = request.without_network;
  made.identity.reason = std::move(request.reason);
  call::TakeTrace(request.traceparent.value_or(""), made.identity);
  call::UseRequestId(request.request_id, made);
  return made;
}

gateway::CallView RunningView(const call::ToolRequest& request) {
  gateway::CallView view;
  view.identity = request.identity;
  view.state = gateway::CallProgress::kRunning;
  return view;
}

// A call that this identity may see, as it was sealed. Stored data that differs from its seal is not shown.
gateway::Answer<audit::SealedCall> FindSealed(call::Recorder& recorder,
                                              const gateway::Identity& who,
                                              const std::string& call_id) {
  const gateway::Answer<store::Call> row = FindVisibleCall(recorder.store(), who, call_id);
  if (!row.ok()) {
    return row.refusal();
  }
  Result<audit::SealedCall> sealed = recorder.ReadSealed(row.value());
  if (!sealed.ok()) {
    return RefusalOf(sealed.error());
  }
  if (sealed->state == audit::SealState::kBroken) {
    PrintError(fmt::format("coffer: {}: call {}: {}; `coffer audit verify` looks at all of them",
                           call::kRecordBroken, call_id, sealed->problem));
    return BrokenRecord(call_id);
  }
  return std::move(sealed).value();
}

gateway::Answer<gateway::CallView> LookUp(call::Recorder& recorder, const gateway::Identity& who,
                                          const std::string& call_id) {
  gateway::Answer<audit::SealedCall> sealed = FindSealed(recorder, who, call_id);
  if (!sealed.ok()) {
    return sealed.refusal();
  }
  std::optional<call::ToolReply> reply;
  if (sealed->result) {
    if (Result<call::ToolReply> parsed = call::ParseReply(*sealed->result); parsed.ok()) {
      reply = std::move(parsed).value();
      reply->log = sealed->log;
    }
  }
  return ViewOf(sealed->call, reply);
}

}  // namespace

void DaemonService::Submit(const gateway::Identity& who, gateway::CallRequest request,
                           gateway::Reply<gateway::CallView> reply) {
  auto submission = std::make_shared<Submission>();
  submission->who = who;
  submission->wait = request.wait;
  submission->watch = request.watch;
  submission->asked = std::make_shared<call::ToolRequest>(RequestOf(who, std::move(request)));
  submission->reply = std::move(reply);
  submission->arrived = BootTime();
  const Submitted submitted = submission;
  const Lane lane = LaneOf(submitted->reply.asker().get());
  // A call runs, whether or not its client waits for it, unless the client has given it up before it began.
  std::function<bool()> wanted;
  if (submitted->watch != nullptr) {
    wanted = [watch = submitted->watch] { return !watch->unwanted; };
  }
  if (!context_.workers().Submit(lane, {[this, submitted] { Climb(submitted); }, wanted})) {
    submitted->reply(Busy());
  }
}

void DaemonService::Climb(const Submitted& submitted) {
  const std::shared_ptr<call::ToolRequest>& asked = submitted->asked;
  // The ladder looks at the switches itself, and leaves a receipt.
  if (std::optional<gateway::Refusal> lapse = FindLapse(context_.store(), submitted->who)) {
    RefuseSubmitted(submitted, *lapse);
    return;
  }
  if (const Status mounted = OpenSession(*asked); !mounted.ok()) {
    RefuseSubmitted(submitted, RefusalOf(mounted.error()));
    return;
  }
  std::variant<call::ReadyCall, call::ToolReply> climbed = context_.ladder().Climb(*asked);
  if (const auto* answered = std::get_if<call::ToolReply>(&climbed)) {
    AnswerSubmitted(submitted, *answered);
    return;
  }
  auto ready = std::make_shared<call::ReadyCall>(std::move(std::get<call::ReadyCall>(climbed)));
  context_.meter.metrics().Waited(asked->identity.tenant.name(), BootTime() - submitted->arrived);
  const Result<SessionProcesses::Given> given = processes_.Connect(*ready);
  UniqueFd theirs;  // open until the warden has it
  Result<RelayEnd> relay = OpenRelay(*ready, theirs);
  const auto fail = [&](const Error& error) {
    return std::variant<call::RunChannels, call::ToolReply>(
        context_.ladder().DescendUnlaunched(*ready, error));
  };
  auto launched = !given.ok()   ? fail(given.error())
                  : !relay.ok() ? fail(relay.error())
                                : context_.ladder().Launch(*ready, context_.launcher());
  if (const auto* answered = std::get_if<call::ToolReply>(&launched)) {
    processes_.End(ready->call_id(), *answered);
    AnswerSubmitted(submitted, *answered);
    return;
  }
  auto shared =
      std::make_shared<call::RunChannels>(std::move(std::get<call::RunChannels>(launched)));
  auto end = std::make_shared<RelayEnd>(std::move(relay).value());
  context_.loop.Post(
      [this, ready, shared, submitted, end] { Watch(ready, shared, submitted, end); });
}

// Whether the call may use the session is the ladder's to say, also that there is none.
Status DaemonService::OpenSession(const call::ToolRequest& request) {
  const store::CallIdentity& by = request.identity;
  if (by.session_id.empty()) {
    return {};
  }
  TRY_ASSIGN(const std::optional<store::Session> session,
             store::FindSession(context_.store(), by.tenant, by.session_id));
  return session && !session->ended_at ? volumes_.Ensure(*session) : Status();
}

void DaemonService::Watch(const std::shared_ptr<call::ReadyCall>& ready,
                          const std::shared_ptr<call::RunChannels>& channels,
                          const Submitted& submitted, const std::shared_ptr<RelayEnd>& relay) {
  const std::string id = ready->call_id();
  Flight& flight = calls_[id];
  flight.request = ready->request;
  flight.who = submitted->who;
  flight.number = submitted->number;
  context_.meter.metrics().CallRuns(flight.request.identity.tenant.name());
  if (submitted->wait) {
    flight.reply = submitted->reply;
  } else if (submitted->reply) {
    submitted->reply(RunningView(flight.request));
  }
  RunningCall::Hooks hooks;
  if (ready->run.background) {
    hooks.printed = [this, id](std::string_view text) { processes_.Print(id, text); };
  }
  hooks.asked = [this, id](const egress::AccessNotice& notice) { TellAsked(id, notice); };
  flight.inside = ServeInside(id, *ready, std::move(*relay));
  const policy::Limits granted = ready->run.envelope.limits;
  // The end is handled after the reading that saw it has returned.
  hooks.done = [this, id] { context_.loop.Post([this, id] { End(id); }); };
  flight.call = std::make_unique<RunningCall>(context_.loop, event_room_, std::move(*ready),
                                              std::move(*channels), std::move(hooks));
  flight.log = flight.call->shared_log();
  // A switch that was flipped between admission and now was looked for among the running calls before this was one.
  KillIfStopped(id, flight.request);
  if (submitted->watch != nullptr && submitted->watch->started) {
    submitted->watch->started(id);
  }
  if (const auto outer = calls_.find(flight.request.identity.parent_id);
      flight.number != 0 && outer != calls_.end() && outer->second.inside != nullptr) {
    outer->second.inside->Runs(flight.number, id, granted);
  }
}

void DaemonService::End(const std::string& call_id) {
  const auto found = calls_.find(call_id);
  if (found == calls_.end()) {
    return;
  }
  // The calls that its program made are sealed before it, so that the log has them first.
  if (found->second.inside != nullptr && !found->second.inside->End()) {
    return;
  }
  // What stays is for watchers and for who may see it, until the call is sealed.
  auto flight = std::make_shared<Flight>();
  flight->call = std::move(found->second.call);
  flight->reply = std::move(found->second.reply);
  flight->request = found->second.request;
  flight->number = found->second.number;
  flight->who = found->second.who;
  found->second.request.args_json.clear();
  auto collected = std::make_shared<call::Collected>(flight->call->Take());
  collected->stopped = std::move(found->second.stopped);
  const call::ReadyCall& ready = flight->call->ready();
  const Nanos used = call::CountedCpu(*collected, *ready.tool, ready.run.envelope.limits);
  const Lane lane{flight->request.identity.tenant.name(), ""};
  context_.workers().SubmitAlways(lane, [this, flight, collected, call_id, used] {
    const call::ToolReply ended =
        context_.ladder().Descend(flight->call->ready(), std::move(*collected));
    processes_.End(call_id, ended);
    const std::function<void()> answer =
        flight->reply ? flight->reply.Prepare(ViewOf(ended, flight->request)) : nullptr;
    context_.loop.Post([this, flight, call_id, answer] {
      calls_.erase(call_id);
      context_.meter.metrics().CallIsOver(flight->request.identity.tenant.name());
      const std::shared_ptr<EventLog> log = flight->call->shared_log();
      log->AddState("finished");
      log->Finish();
      KeepRecent(call_id, log);
      if (answer) {
        answer();
      }
    });
    if (flight->number != 0) {
      EndInner(flight->who, flight->request.identity, flight->number, ended, used);
    }
  });
}

void DaemonService::KeepRecent(const std::string& call_id, const std::shared_ptr<EventLog>& log) {
  recent_.emplace_back(call_id, log);
  size_t bytes = 0;
  for (const auto& [id, kept] : recent_) {
    bytes += kept->bytes();
  }
  while (recent_.size() > kRecentCalls || (bytes > kRecentBytes && recent_.size() > 1)) {
    bytes -= recent_.front().second->bytes();
    recent_.pop_front();
  }
}

DaemonService::Flight* DaemonService::FindFlight(const gateway::Identity& who,
                                                 const std::string& call_id) {
  const auto found = calls_.find(call_id);
  return found == calls_.end() || !MaySee(who, found->second.request.identity.tenant,
                                          found->second.request.identity.agent)
             ? nullptr
             : &found->second;
}

void DaemonService::GetCall(const gateway::Identity& who, const std::string& call_id,
                            gateway::Reply<gateway::CallView> reply) {
  Answer<gateway::CallView>(context_, std::move(reply), [this, who, call_id] {
    return LookUp(context_.recorder(), who, call_id);
  });
}

void DaemonService::GetReceipt(const gateway::Identity& who, const std::string& call_id,
                               gateway::Reply<std::string> reply) {
  Answer<std::string>(
      context_, std::move(reply), [this, who, call_id]() -> gateway::Answer<std::string> {
        gateway::Answer<audit::SealedCall> sealed = FindSealed(context_.recorder(), who, call_id);
        if (!sealed.ok()) {
          return sealed.refusal();
        }
        if (sealed->state == audit::SealState::kOpen) {
          return gateway::Refusal{gateway::RefusalKind::kConflict,
                                  "call.running",
                                  "the call has not ended",
                                  "ask again when it has",
                                  {},
                                  "",
                                  {}};
        }
        return std::move(sealed.value().receipt);
      });
}

void DaemonService::CancelCall(const gateway::Identity& who, const std::string& call_id,
                               gateway::Reply<gateway::CallView> reply) {
  AnswerIfStanding<gateway::Nothing>(
      context_, who,
      [this, who, call_id, reply](gateway::Answer<gateway::Nothing> standing) {
        if (!standing.ok()) {
          reply(standing.refusal());
        } else {
          CancelVisible(who, call_id, reply);
        }
      },
      [] { return gateway::Nothing{}; });
}

void DaemonService::CancelVisible(const gateway::Identity& who, const std::string& call_id,
                                  const gateway::Reply<gateway::CallView>& reply) {
  if (Flight* const flight = FindFlight(who, call_id)) {
    Stop(call_id,
         Refused("policy.cancelled", "cancelled by " + (who.user.empty() ? who.agent : who.user)));
    reply(RunningView(flight->request));
    return;
  }
  const auto ended = [reply](gateway::Answer<gateway::CallView> found) {
    if (!found.ok()) {
      reply(std::move(found));
      return;
    }
    reply(gateway::Refusal{gateway::RefusalKind::kConflict,
                           "call.ended",
                           "the call has ended",
                           "",
                           {},
                           found->identity.call_id,
                           {}});
  };
  GetCall(who, call_id, gateway::Reply<gateway::CallView>(ended, reply.asker()));
}

gateway::WaitHandle DaemonService::WaitEvents(const gateway::Identity& who,
                                              const std::string& call_id, uint64_t after,
                                              size_t max_bytes,
                                              gateway::Reply<gateway::EventBatch> reply) {
  if (Flight* const flight = FindFlight(who, call_id)) {
    return flight->log->Wait(after, max_bytes, std::move(reply));
  }
  // A call that has ended. Its log may still be here; whether the asker may see it, the store knows.
  const auto alive = std::make_shared<bool>(true);
  const std::weak_ptr<bool> waiting = alive;
  const auto kept = std::find_if(recent_.begin(), recent_.end(),
                                 [&](const auto& recent) { return recent.first == call_id; });
  if (kept != recent_.end()) {
    const auto tell = [waiting, log = kept->second, after, max_bytes,
                       reply](const gateway::Answer<gateway::Nothing>& visible) {
      if (waiting.expired()) {
        return;
      }
      if (!visible.ok()) {
        reply(visible.refusal());
        return;
      }
      (void)log->Wait(after, max_bytes, reply);
    };
    Answer<gateway::Nothing>(context_, gateway::Reply<gateway::Nothing>(tell, reply.asker()),
                             [this, who, call_id]() -> gateway::Answer<gateway::Nothing> {
                               const gateway::Answer<store::Call> row =
                                   FindVisibleCall(context_.store(), who, call_id);
                               if (!row.ok()) {
                                 return row.refusal();
                               }
                               return gateway::Nothing{};
                             });
    return alive;
  }
  const auto rebuild = [this, waiting, call_id, after, max_bytes,
                        reply](gateway::Answer<gateway::CallView> found) {
    if (waiting.expired()) {
      return;
    }
    if (!found.ok()) {
      reply(found.refusal());
      return;
    }
    const auto log = std::make_shared<EventLog>(event_room_);
    if (found->result) {
      log->AddOutput(gateway::CallEvent::Kind::kStdout, found->result->stdout_text);
      log->AddOutput(gateway::CallEvent::Kind::kStderr, found->result->stderr_text);
    }
    log->AddState("finished");
    log->Finish();
    if (found->state == gateway::CallProgress::kFinished) {
      KeepRecent(call_id, log);
    }
    (void)log->Wait(after, max_bytes, reply);
  };
  GetCall(who, call_id, gateway::Reply<gateway::CallView>(rebuild, reply.asker()));
  return alive;
}

void DaemonService::CheckWatcher(const gateway::Identity& who, gateway::Watched what,
                                 gateway::Reply<gateway::Nothing> reply) {
  Answer<gateway::Nothing>(
      context_, std::move(reply), [this, who, what]() -> gateway::Answer<gateway::Nothing> {
        const bool running = what == gateway::Watched::kRunning;
        if (std::optional<gateway::Refusal> no =
                running ? FindObstacle(context_.store(), who) : FindLapse(context_.store(), who)) {
          return std::move(*no);
        }
        return gateway::Nothing{};
      });
}

}  // namespace coffer::daemon
