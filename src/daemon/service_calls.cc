// SPDX-License-Identifier: Apache-2.0
//
// The part of the service that is about calls.
#include <fmt/format.h>

#include "daemon/service.h"
#include "daemon/views.h"
#include "store/call.h"
#include "store/key.h"

namespace coffer::daemon {
namespace {

constexpr size_t kRecent = 256;

Result<store::TenantId> TenantOf(const gateway::Identity& who) {
  return store::TenantId::Parse(who.tenant);
}

gateway::Refusal UnknownCall() {
  return {gateway::RefusalKind::kNotFound, "call.unknown", "there is no such call", "", {}, "", {}};
}

gateway::Refusal Nobody(std::string message) {
  return {gateway::RefusalKind::kUnauthenticated, "auth.key", std::move(message), "", {}, "", {}};
}

call::ToolRequest RequestOf(const gateway::Identity& who, const store::TenantId& tenant,
                            gateway::CallRequest&& request) {
  call::ToolRequest made;
  made.tenant = tenant;
  made.agent = who.agent;
  made.user = who.user;
  made.tool = std::move(request.tool);
  made.args_json = std::move(request.args_json);
  made.session_id = request.session_id.value_or("");
  made.parent_id = request.parent_id.value_or("");
  made.idempotency_key = request.idempotency_key.value_or("");
  made.dry_run = request.dry_run;
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

gateway::Answer<gateway::CallView> LookUp(store::Store& store, const store::TenantId& tenant,
                                          const std::string& call_id) {
  Result<std::optional<store::Call>> call = store::FindCall(store, tenant, call_id);
  if (!call.ok()) {
    return RefusalOf(call.error());
  }
  if (!*call) {
    return UnknownCall();
  }
  std::optional<call::ToolReply> reply;
  if (Result<std::optional<std::string>> stored = store::FindResult(store, tenant, call_id);
      stored.ok() && *stored) {
    if (Result<call::ToolReply> parsed = call::ParseReply(**stored); parsed.ok()) {
      reply = std::move(parsed).value();
    }
  }
  return ViewOf(**call, reply);
}

}  // namespace

void DaemonService::Authenticate(const gateway::Credential& credential,
                                 gateway::Reply<gateway::Identity> reply) {
  if (credential.verified) {
    reply(*credential.verified);
    return;
  }
  if (!credential.bearer.empty()) {
    Answer<gateway::Identity>(
        desk_, std::move(reply),
        [this, text = credential.bearer]() -> gateway::Answer<gateway::Identity> {
          Result<store::KeyVerdict> verdict = store::CheckKey(desk_.store(), text);
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
          return gateway::Identity{key.tenant.name(), key.agent, RoleOf(key.role), key.id, ""};
        });
    return;
  }
  if (credential.peer && (credential.peer->uid == options_.owner || credential.peer->uid == 0)) {
    const std::string uid = fmt::format("uid:{}", credential.peer->uid);
    reply(gateway::Identity{"local", "operator", gateway::Role::kOperator, uid, uid});
    return;
  }
  reply(Nobody("a key is needed"));
}

void DaemonService::Submit(const gateway::Identity& who, gateway::CallRequest request,
                           gateway::Reply<gateway::CallView> reply) {
  Result<store::TenantId> tenant = TenantOf(who);
  if (!tenant.ok()) {
    reply(RefusalOf(tenant.error()));
    return;
  }
  const bool wait = request.wait;
  auto asked = std::make_shared<call::ToolRequest>(RequestOf(who, *tenant, std::move(request)));
  const bool taken = desk_.workers().Submit([this, asked, wait, reply] {
    std::variant<call::ReadyCall, call::ToolReply> climbed = desk_.ladder().Climb(*asked);
    if (auto* answered = std::get_if<call::ToolReply>(&climbed)) {
      desk_.loop.Post(
          [reply, answer = ViewOf(*answered, *asked)]() mutable { reply(std::move(answer)); });
      return;
    }
    auto ready = std::make_shared<call::ReadyCall>(std::move(std::get<call::ReadyCall>(climbed)));
    Result<call::RunChannels> channels =
        desk_.launcher().Launch(ready->call_id, ready->run, ready->stdin_text);
    if (!channels.ok()) {
      const call::ToolReply failed = desk_.ladder().DescendUnlaunched(*ready, channels.error());
      desk_.loop.Post(
          [reply, answer = ViewOf(failed, *asked)]() mutable { reply(std::move(answer)); });
      return;
    }
    auto shared = std::make_shared<call::RunChannels>(std::move(channels).value());
    desk_.loop.Post([this, ready, shared, wait, reply] { Watch(ready, shared, wait, reply); });
  });
  if (!taken) {
    reply(Busy());
  }
}

void DaemonService::Watch(std::shared_ptr<call::ReadyCall> ready,
                          std::shared_ptr<call::RunChannels> channels, bool wait,
                          gateway::Reply<gateway::CallView> reply) {
  const std::string id = ready->call_id;
  Flight& flight = calls_[id];
  flight.request = ready->request;
  if (wait) {
    flight.reply = std::move(reply);
  } else {
    reply(RunningView(flight.request, id));
  }
  // The end is handled after the reading that saw it has returned.
  flight.call =
      std::make_unique<RunningCall>(desk_.loop, std::move(*ready), std::move(*channels),
                                    [this, id] { desk_.loop.Post([this, id] { End(id); }); });
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
  desk_.workers().SubmitAlways([this, flight, collected, call_id] {
    const call::ToolReply ended =
        desk_.ladder().Descend(flight->call->ready(), std::move(*collected));
    desk_.loop.Post([this, flight, call_id, answer = ViewOf(ended, flight->request)]() mutable {
      calls_.erase(call_id);
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
  return found == calls_.end() || found->second.request.tenant.name() != who.tenant
             ? nullptr
             : &found->second;
}

void DaemonService::GetCall(const gateway::Identity& who, const std::string& call_id,
                            gateway::Reply<gateway::CallView> reply) {
  Result<store::TenantId> tenant = TenantOf(who);
  if (!tenant.ok()) {
    reply(UnknownCall());
    return;
  }
  Answer<gateway::CallView>(desk_, std::move(reply), [this, tenant = *tenant, call_id] {
    return LookUp(desk_.store(), tenant, call_id);
  });
}

void DaemonService::GetReceipt(const gateway::Identity& who, const std::string& call_id,
                               gateway::Reply<std::string> reply) {
  Result<store::TenantId> tenant = TenantOf(who);
  if (!tenant.ok()) {
    reply(UnknownCall());
    return;
  }
  Answer<std::string>(
      desk_, std::move(reply), [this, tenant = *tenant, call_id]() -> gateway::Answer<std::string> {
        Result<std::optional<store::Call>> call = store::FindCall(desk_.store(), tenant, call_id);
        Result<std::optional<std::string>> receipt =
            store::FindReceipt(desk_.store(), tenant, call_id);
        if (!call.ok() || !receipt.ok()) {
          return RefusalOf(call.ok() ? receipt.error() : call.error());
        }
        if (!*call) {
          return UnknownCall();
        }
        if (!*receipt) {
          return gateway::Refusal{gateway::RefusalKind::kConflict,
                                  "call.running",
                                  "the call has not ended",
                                  "ask again when it has",
                                  {},
                                  "",
                                  {}};
        }
        return std::move(**receipt);
      });
}

void DaemonService::CancelCall(const gateway::Identity& who, const std::string& call_id,
                               gateway::Reply<gateway::CallView> reply) {
  if (Flight* const flight = FindFlight(who, call_id)) {
    desk_.launcher().Kill(call_id);
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
  // A call that has ended: what it said, as one piece each. A recent one still has its own log, but only its tenant may
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
