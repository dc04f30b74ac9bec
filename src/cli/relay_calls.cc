// SPDX-License-Identifier: Apache-2.0
#include "cli/relay_calls.h"

#include <errno.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/sys.h"
#include "call/outer_call.h"
#include "gateway/mcp/tool_json.h"

namespace coffer::cli {
namespace {

using call::InsideFrame;
using gateway::McpError;
using gateway::McpErrorCode;
using raw::Arg;
using raw::Syscall;

constexpr Nanos kMostEnding = std::chrono::seconds(15);

}  // namespace

RelayCalls::RelayCalls(UniqueFd gateway) : gateway_(std::move(gateway)) {}

RelayCalls::~RelayCalls() = default;

bool RelayCalls::AwaitTools(int control) {
  while (gateway_ && tools_ == nullptr) {
    pollfd polled[] = {{gateway_.get(), POLLIN, 0}, {control, POLLIN, 0}};
    if (::poll(polled, 2, -1) < 0) {
      continue;
    }
    if (polled[1].revents != 0) {
      return false;
    }
    Read();
  }
  return tools_ != nullptr;
}

void RelayCalls::Begin(InsideCaller& caller, const gateway::McpCall& call) {
  if (!gateway_ || ending_since_) {
    caller.mcp().Answer(call.id,
                        McpError{McpErrorCode::kInternal, "no tool can be called any more", {}});
    return;
  }
  if (call.args_json.size() > call::kMostInsideArgs) {
    caller.mcp().Answer(
        call.id, McpError{McpErrorCode::kBadParams, "the arguments are longer than 1 MiB", {}});
    return;
  }
  if (waiting_.Add(caller, call)) {
    Ask();
  }
}

void RelayCalls::Ask() {
  while (gateway_ && !ending_since_ && asked_.size() < call::kInnerAtOnce &&
         waiting_.Next() != nullptr) {
    const InsideWaiting::Waiting taken = waiting_.Take();
    InsideFrame frame;
    frame.kind = InsideFrame::Kind::kCall;
    frame.number = ++next_;
    frame.tool = taken.call.tool;
    // A request that one connection sends twice runs once.
    frame.key = HashOf(fmt::format("{}\n{}", taken.caller->number(), taken.call.id));
    frame.traceparent =
        taken.call.traceparent.size() <= call::kMostInsideText ? taken.call.traceparent : "";
    frame.body = taken.call.args_json;
    asked_[frame.number] = {taken.caller, taken.call.id};
    Send(frame);
  }
}

void RelayCalls::Cancel(const InsideCaller& caller, const gateway::McpId& id) {
  for (const auto& [number, asked] : asked_) {
    if (asked.caller == &caller && asked.id == id) {
      InsideFrame frame;
      frame.kind = InsideFrame::Kind::kCancel;
      frame.number = number;
      Send(frame);
    }
  }
  waiting_.Cancel(caller, id);
}

void RelayCalls::CancelAllOf(const InsideCaller& caller) {
  waiting_.CancelAllOf(caller);
  for (const auto& [number, asked] : asked_) {
    if (asked.caller == &caller) {
      InsideFrame frame;
      frame.kind = InsideFrame::Kind::kCancel;
      frame.number = number;
      Send(frame);
    }
  }
}

// What the gateway began it ends, because nothing more comes from here; its own end says that it has.
void RelayCalls::CancelAll() {
  ending_since_ = BootTime();
  waiting_.Clear();
  if (gateway_) {
    (void)Syscall(SYS_shutdown, gateway_.get(), SHUT_WR);
    out_.clear();
  }
}

bool RelayCalls::HasAny(const InsideCaller& caller) const {
  return std::any_of(asked_.begin(), asked_.end(),
                     [&](const auto& one) { return one.second.caller == &caller; }) ||
         waiting_.HasAny(caller);
}

bool RelayCalls::idle() const {
  if (ending_since_) {
    return !gateway_ || BootTime() - *ending_since_ > kMostEnding;
  }
  return asked_.empty() && waiting_.empty();
}

void RelayCalls::AddTo(std::vector<pollfd>* polled) const {
  if (gateway_) {
    polled->push_back(
        {gateway_.get(), static_cast<short>(POLLIN | (out_.empty() ? 0 : POLLOUT)), 0});
  }
}

void RelayCalls::Handle(const std::vector<pollfd>& polled) {
  for (const pollfd& one : polled) {
    if (!gateway_ || one.fd != gateway_.get() || one.revents == 0) {
      continue;
    }
    if ((one.revents & POLLOUT) != 0) {
      Write();
    }
    if ((one.revents & ~POLLOUT) != 0) {
      Read();
    }
    break;
  }
  Ask();
}

void RelayCalls::Send(const InsideFrame& frame) {
  if (gateway_ && !ending_since_) {
    out_ += EncodeInsideFrame(frame);
    Write();
  }
}

void RelayCalls::Write() {
  if (!gateway_ || out_.empty()) {
    return;
  }
  const long sent = Syscall(SYS_sendto, gateway_.get(), Arg(out_.data()),
                            static_cast<long>(out_.size()), MSG_NOSIGNAL | MSG_DONTWAIT, 0, 0);
  if (sent > 0) {
    out_.erase(0, static_cast<size_t>(sent));
  }
}

void RelayCalls::Read() {
  static std::array<char, 65536> piece;
  const long got =
      Syscall(SYS_recvfrom, gateway_.get(), Arg(piece.data()), piece.size(), MSG_DONTWAIT, 0, 0);
  if (got == -EAGAIN || got == -EINTR) {
    return;
  }
  if (got <= 0) {
    Lose();
    return;
  }
  in_.Add(std::string_view(piece.data(), static_cast<size_t>(got)));
  for (;;) {
    const Result<std::optional<InsideFrame>> next = in_.Next();
    if (!next.ok()) {
      Lose();
      return;
    }
    if (!*next) {
      return;
    }
    Take(**next);
  }
}

void RelayCalls::Take(const InsideFrame& frame) {
  if (frame.kind == InsideFrame::Kind::kTools) {
    Result<Json> tools = ParseJson(frame.body);
    if (tools.ok() && tools_ == nullptr) {
      tools_ = std::make_unique<const Json>(std::move(tools).value());
    }
    return;
  }
  const auto found = asked_.find(frame.number);
  if (found == asked_.end()) {
    return;
  }
  const Asked asked = std::move(found->second);
  asked_.erase(found);
  gateway::McpServer& mcp = asked.caller->mcp();
  if (frame.kind == InsideFrame::Kind::kRefusal) {
    mcp.Answer(asked.id, McpError{McpErrorCode::kInternal, frame.body, {}});
    return;
  }
  const Result<call::ToolReply> reply = call::DecodeInsideReply(frame.body);
  if (!reply.ok()) {
    mcp.Answer(asked.id, McpError{McpErrorCode::kInternal, "the answer cannot be shown", {}});
  } else if (reply->error_class == "policy.tool" &&
             reply->refusal == call::ToolRefusal::kNotFound) {
    mcp.Answer(asked.id, McpError{McpErrorCode::kBadParams,
                                  reply->error_message + " here; tools/list names those there are",
                                  {}});
  } else {
    mcp.Answer(asked.id, gateway::McpToolResult(*reply));
  }
}

void RelayCalls::Lose() {
  gateway_.Reset();
  out_.clear();
  for (const InsideWaiting::Waiting& one : waiting_.TakeAll()) {
    asked_[++next_] = {one.caller, one.call.id};
  }
  for (const auto& [number, asked] : std::exchange(asked_, {})) {
    asked.caller->mcp().Answer(
        asked.id, McpError{McpErrorCode::kInternal, "no tool can be called any more", {}});
  }
}

}  // namespace coffer::cli
