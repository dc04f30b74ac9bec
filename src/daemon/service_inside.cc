// SPDX-License-Identifier: Apache-2.0
//
// The part of the service that is about calls which the program of a call makes.
#include <fmt/format.h>
#include <sys/socket.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "call/outer_call.h"
#include "call/warden/protocol.h"
#include "daemon/service.h"
#include "daemon/views.h"
#include "gateway/mcp/tool_json.h"

namespace coffer::daemon {

void DaemonService::AnswerSubmitted(const Submitted& submitted, const call::ToolReply& reply) {
  if (submitted->number == 0) {
    context_.loop.Post(submitted->reply.Prepare(ViewOf(reply, *submitted->asked)));
    return;
  }
  EndInner(submitted->who, submitted->asked->identity, submitted->number, reply, Nanos(0));
}

void DaemonService::RefuseSubmitted(const Submitted& submitted, const gateway::Refusal& refusal) {
  if (submitted->number == 0) {
    context_.loop.Post(submitted->reply.Prepare(refusal));
    return;
  }
  call::ToolReply reply;
  reply.outcome = "denied";
  reply.refusal = call::ToolRefusal::kDenied;
  reply.error_class = refusal.code;
  reply.error_message = refusal.message;
  AnswerSubmitted(submitted, reply);
}

Result<DaemonService::RelayEnd> DaemonService::OpenRelay(call::ReadyCall& ready,
                                                         UniqueFd& theirs) const {
  RelayEnd end;
  if (ready.run.tools.empty()) {
    return end;
  }
  Json shown = Json::array();
  for (const std::string& name : ready.run.tools) {
    const std::shared_ptr<const policy::Tool> tool = context_.shelf().Find(name);
    if (tool == nullptr) {
      return Refused("policy.tools", fmt::format("there is no tool called {}", Printable(name)),
                     "[calls] of the manifest names it; GET /v1/tools has those there are");
    }
    shown.push_back(gateway::McpToolJson(tool->manifest));
  }
  end.tools = PrintJson(Json{{"tools", std::move(shown)}});
  TRY_ASSIGN(call::SocketPair pair, call::MakeSocketPair(SOCK_STREAM));
  end.socket = std::move(pair.first);
  theirs = std::move(pair.second);
  ready.run.tools_channel = theirs.get();
  return end;
}

std::unique_ptr<CallsInside> DaemonService::ServeInside(const std::string& call_id,
                                                        const call::ReadyCall& ready,
                                                        RelayEnd relay) {
  if (!relay.socket) {
    return nullptr;
  }
  InnerWays ways;
  ways.begin = [this, call_id](const InnerCall& call) {
    return BeginInner(calls_.at(call_id).who, call);
  };
  ways.stop = [this](const std::string& inner) {
    Stop(inner,
         Refused("policy.cancelled", "cancelled by the program that made the call, or by its end"));
  };
  ways.hold = [this, lane = LaneOf(calls_.at(call_id).who)](size_t bytes) {
    return context_.workers().queue().Hold(lane, bytes).handle;
  };
  ways.idle = [this, call_id] { context_.loop.Post([this, call_id] { End(call_id); }); };
  return std::make_unique<CallsInside>(context_.loop, context_.shelf(), ready,
                                       std::move(relay.socket), std::move(relay.tools),
                                       std::move(ways));
}

// In a turn of its own beside the other requests of its tenant. The outer call holds no worker
// while it runs, so its calls never wait for it.
bool DaemonService::BeginInner(const gateway::Identity& who, const InnerCall& call) {
  if (!HasRoom(LaneOf(who))) {
    return false;
  }
  auto submission = std::make_shared<Submission>();
  submission->who = who;
  submission->asked = call.request;
  submission->arrived = BootTime();
  submission->number = call.number;
  submission->unwanted = call.unwanted;
  submission->room = call.room;
  const Submitted submitted = submission;
  const store::CallIdentity& by = call.request->identity;
  return context_.workers().Submit({by.tenant.name(), "inside " + by.parent_id},
                                   {[this, submitted] {
                                      if (!*submitted->unwanted) {
                                        Climb(submitted);
                                        return;
                                      }
                                      call::ToolReply reply;
                                      reply.outcome = "denied";
                                      reply.error_class = "policy.cancelled";
                                      reply.error_message = "cancelled before it began";
                                      AnswerSubmitted(submitted, reply);
                                    },
                                    nullptr});
}

// The frame is made here, because a reply can be long, and what it takes is the key's until the relay has it.
void DaemonService::EndInner(const gateway::Identity& who, const store::CallIdentity& inner,
                             uint64_t number, const call::ToolReply& reply, Nanos cpu_used) {
  const auto frame = std::make_shared<RelayFrame>();
  frame->bytes = call::EncodeInsideReplyFrame(number, call::WithoutHost(reply));
  frame->room = context_.workers().queue().HoldAnyway(LaneOf(who), frame->bytes.size());
  context_.loop.Post([this, outer = inner.parent_id, number, frame, cpu_used] {
    if (const auto found = calls_.find(outer);
        found != calls_.end() && found->second.inside != nullptr) {
      found->second.inside->Ended(number, std::move(*frame), cpu_used);
    }
  });
}

}  // namespace coffer::daemon
