// SPDX-License-Identifier: Apache-2.0
//
// The part of the service that is about calls.
#include <fmt/format.h>

#include "base/print.h"
#include "daemon/service.h"
#include "daemon/standing.h"
#include "daemon/views.h"
#include "daemon/visibility.h"
#include "store/call.h"
#include "store/key.h"
#include "store/tenant.h"

namespace coffer::daemon {
namespace {

constexpr size_t kRecent = 256;

gateway::Refusal Nobody(std::string message) {
  return {gateway::RefusalKind::kUnauthenticated, "auth.key", std::move(message), "", {}, "", {}};
}

call::ToolRequest RequestOf(const gateway::Identity& who, const store::TenantId& tenant,
                            gateway::CallRequest&& request) {
  call::ToolRequest made;
  made.tenant = tenant;
  made.agent = who.agent;
  made.user = who.user;
  made.key_id = who.key_id;
  made.tool = std::move(request.tool);
  made.args_json = std::move(request.args_json);
  made.session_id = request.session_id.value_or("");
  made.parent_id = request.parent_id.value_or("");
  made.idempotency_key = request.idempotency_key.value_or("");
  made.dry_run = request.dry_run;
  call::TakeTrace(request.traceparent.value_or(""), made);
  return made;
}

gateway::CallView RunningView(const call::ToolRequest& request, const std::string& call_id) {
  gateway::CallView view;
  view.call_id = call_id;
  view.state = gateway::CallState::kRunning;
  view.tool = request.tool;
  view.session_id = request.session_id;
  view.parent_id = request.parent_id;
  return view;
}

// A call that this identity may see, as it was sealed. What is stored of it and is not what was sealed is not told.
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

void DaemonService::Authenticate(const gateway::Credential& credential,
                                 gateway::Reply<gateway::Identity> reply) {
  if (credential.verified) {
    // An identity provider may know tenants that nobody made here.
    Answer<gateway::Identity>(
        context_, std::move(reply),
        [this, who = *credential.verified]() -> gateway::Answer<gateway::Identity> {
          const Result<store::TenantId> tenant = store::TenantId::Parse(who.tenant);
          Result<std::optional<store::Tenant>> found =
              tenant.ok() ? store::FindTenant(context_.store(), *tenant)
                          : Result<std::optional<store::Tenant>>(std::optional<store::Tenant>());
          if (!found.ok()) {
            return RefusalOf(found.error());
          }
          if (!*found) {
            return gateway::Refusal{gateway::RefusalKind::kRefused,
                                    "auth.tenant",
                                    "the token's tenant does not exist here",
                                    "its operator makes it with `coffer key new --tenant NAME`",
                                    {},
                                    "",
                                    {}};
          }
          return who;
        });
    return;
  }
  if (!credential.bearer.empty()) {
    Answer<gateway::Identity>(
        context_, std::move(reply),
        [this, text = credential.bearer]() -> gateway::Answer<gateway::Identity> {
          Result<store::KeyVerdict> verdict = store::CheckKey(context_.store(), text);
          if (!verdict.ok()) {
            return RefusalOf(verdict.error());
          }
          switch (verdict->state) {
            case store::KeyState::kValid:
              break;
            case store::KeyState::kExpired:
              return Nobody("this key has expired");
            case store::KeyState::kRevoked:
              return Nobody("this key was revoked");
            case store::KeyState::kUnknown:
              return Nobody("there is no such key");
          }
          const store::ApiKey& key = *verdict->key;
          return gateway::Identity{key.tenant.name(), key.agent, RoleOf(key.role), key.id, "",
                                   key.all_tenants};
        });
    return;
  }
  if (credential.peer) {
    AuthenticatePeer(credential.peer->uid, std::move(reply));
    return;
  }
  reply(Nobody("a key is needed"));
}

// The kernel says who it is; the configuration says what that means. The owner and root need no entry.
void DaemonService::AuthenticatePeer(uid_t uid, gateway::Reply<gateway::Identity> reply) {
  const std::string name = fmt::format("uid:{}", uid);
  if (uid == options_.owner || uid == 0) {
    reply(gateway::Identity{"local", "operator", gateway::Role::kOperator, name, name, true});
    return;
  }
  const std::shared_ptr<const FileConfig> rules = context_.live_config.current();
  const PeerConfig* const peer = rules->FindPeer(uid);
  if (peer == nullptr) {
    reply(Nobody("a key is needed: the configuration has no [[peer]] with your uid"));
    return;
  }
  Answer<gateway::Identity>(
      context_, std::move(reply),
      [this, peer = *peer, name]() -> gateway::Answer<gateway::Identity> {
        const Result<store::TenantId> tenant = store::TenantId::Parse(peer.tenant);
        if (!tenant.ok()) {
          return RefusalOf(tenant.error());
        }
        if (const Result<store::Tenant> made = store::EnsureTenant(context_.store(), *tenant);
            !made.ok()) {
          return RefusalOf(made.error());
        }
        return gateway::Identity{peer.tenant, peer.agent, RoleOf(peer.role), name, name, false};
      });
}

void DaemonService::Submit(const gateway::Identity& who, gateway::CallRequest request,
                           gateway::Reply<gateway::CallView> reply) {
  Result<store::TenantId> tenant = store::TenantId::Parse(who.tenant);
  if (!tenant.ok()) {
    reply(RefusalOf(tenant.error()));
    return;
  }
  const bool wait = request.wait;
  auto asked = std::make_shared<call::ToolRequest>(RequestOf(who, *tenant, std::move(request)));
  const Nanos arrived = BootTime();
  const bool taken = context_.workers().Submit([this, who, asked, wait, reply, arrived] {
    // The ladder looks at the switches itself, and leaves a receipt.
    if (std::optional<gateway::Refusal> lapse = FindLapse(context_.store(), who)) {
      context_.loop.Post([reply, lapse = std::move(*lapse)] { reply(lapse); });
      return;
    }
    std::variant<call::ReadyCall, call::ToolReply> climbed = context_.ladder().Climb(*asked);
    if (auto* answered = std::get_if<call::ToolReply>(&climbed)) {
      context_.loop.Post(
          [reply, answer = ViewOf(*answered, *asked)]() mutable { reply(std::move(answer)); });
      return;
    }
    auto ready = std::make_shared<call::ReadyCall>(std::move(std::get<call::ReadyCall>(climbed)));
    context_.meter.metrics().Waited(asked->tenant.name(), BootTime() - arrived);
    const Result<std::optional<store::Tenant>> owner =
        store::FindTenant(context_.store(), asked->tenant);
    ready->run.tenant = owner.ok() && *owner ? (*owner)->number : 0;
    Result<call::RunChannels> channels =
        ready->run.tenant != 0
            ? context_.launcher().Launch(ready->call_id, ready->run, ready->stdin_text)
            : Result<call::RunChannels>(Internal("internal", "the call has no tenant"));
    if (!channels.ok()) {
      const call::ToolReply failed = context_.ladder().DescendUnlaunched(*ready, channels.error());
      context_.loop.Post(
          [reply, answer = ViewOf(failed, *asked)]() mutable { reply(std::move(answer)); });
      return;
    }
    auto shared = std::make_shared<call::RunChannels>(std::move(channels).value());
    context_.loop.Post([this, ready, shared, wait, reply] { Watch(ready, shared, wait, reply); });
  });
  if (!taken) {
    reply(Busy());
  }
}

void DaemonService::Watch(const std::shared_ptr<call::ReadyCall>& ready,
                          const std::shared_ptr<call::RunChannels>& channels, bool wait,
                          gateway::Reply<gateway::CallView> reply) {
  const std::string id = ready->call_id;
  Flight& flight = calls_[id];
  flight.request = ready->request;
  context_.meter.metrics().CallRuns(flight.request.tenant.name());
  if (wait) {
    flight.reply = std::move(reply);
  } else {
    reply(RunningView(flight.request, id));
  }
  // The end is handled after the reading that saw it has returned.
  flight.call =
      std::make_unique<RunningCall>(context_.loop, std::move(*ready), std::move(*channels),
                                    [this, id] { context_.loop.Post([this, id] { End(id); }); });
  // A switch that was flipped between admission and now was looked for among the running calls before this was one.
  KillIfStopped(id, flight.request);
}

void DaemonService::End(const std::string& call_id) {
  const auto found = calls_.find(call_id);
  if (found == calls_.end()) {
    return;
  }
  auto flight = std::make_shared<Flight>(std::move(found->second));
  auto collected = std::make_shared<call::Collected>(flight->call->Take());
  context_.workers().SubmitAlways([this, flight, collected, call_id] {
    const call::ToolReply ended =
        context_.ladder().Descend(flight->call->ready(), std::move(*collected));
    context_.loop.Post([this, flight, call_id, answer = ViewOf(ended, flight->request)]() mutable {
      calls_.erase(call_id);
      context_.meter.metrics().CallIsOver(flight->request.tenant.name());
      const std::shared_ptr<EventLog> log = flight->call->shared_log();
      log->AddState("finished");
      log->Finish();
      recent_.emplace_back(call_id, log);
      if (recent_.size() > kRecent) {
        recent_.pop_front();
      }
      if (flight->reply) {
        flight->reply(std::move(answer));
      }
    });
  });
}

DaemonService::Flight* DaemonService::FindFlight(const gateway::Identity& who,
                                                 const std::string& call_id) {
  const auto found = calls_.find(call_id);
  return found == calls_.end() ||
                 !MaySee(who, found->second.request.tenant.name(), found->second.request.agent)
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
    context_.launcher().Kill(call_id);
    reply(RunningView(flight->request, call_id));
    return;
  }
  GetCall(who, call_id, [reply](gateway::Answer<gateway::CallView> found) {
    if (!found.ok()) {
      reply(std::move(found));
      return;
    }
    reply(gateway::Refusal{gateway::RefusalKind::kConflict,
                           "call.ended",
                           "the call has ended",
                           "",
                           {},
                           found->call_id,
                           {}});
  });
}

gateway::WaitHandle DaemonService::WaitEvents(const gateway::Identity& who,
                                              const std::string& call_id, uint64_t after,
                                              size_t max_bytes,
                                              gateway::Reply<gateway::EventBatch> reply) {
  if (Flight* const flight = FindFlight(who, call_id)) {
    return flight->call->log().Wait(after, max_bytes, std::move(reply));
  }
  // A call that has ended: what it said, as one piece each. A recent one still has its own log, but only who may
  // see it, and the store knows whose it is.
  const auto alive = std::make_shared<bool>(true);
  const std::weak_ptr<bool> waiting = alive;
  GetCall(
      who, call_id,
      [this, waiting, call_id, after, max_bytes, reply](gateway::Answer<gateway::CallView> found) {
        if (waiting.expired()) {
          return;
        }
        if (!found.ok()) {
          reply(found.refusal());
          return;
        }
        for (const auto& [id, log] : recent_) {
          if (id == call_id) {
            (void)log->Wait(after, max_bytes, reply);
            return;
          }
        }
        EventLog told;
        if (found->result) {
          told.AddOutput(gateway::CallEvent::Kind::kStdout, found->result->stdout_text);
          told.AddOutput(gateway::CallEvent::Kind::kStderr, found->result->stderr_text);
        }
        told.AddState("finished");
        told.Finish();
        (void)told.Wait(after, max_bytes, reply);
      });
  return alive;
}

}  // namespace coffer::daemon
