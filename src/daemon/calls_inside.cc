// SPDX-License-Identifier: Apache-2.0
#include "daemon/calls_inside.h"

#include <errno.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "base/hash.h"
#include "base/sys.h"
#include "call/outer_call.h"
#include "policy/manifest/manifest.h"

namespace coffer::daemon {
namespace {

using call::InsideFrame;
using raw::Arg;
using raw::Syscall;

constexpr std::chrono::milliseconds kRest{200};
constexpr size_t kLongFrame = 65536;  // from here on it is counted as the tenant's

call::ToolRequest WithoutArguments(call::ToolRequest request) {
  request.args_json.clear();
  return request;
}

}  // namespace

CallsInside::CallsInside(net::Loop& loop, const call::ToolShelf& shelf,
                         const call::ReadyCall& outer, UniqueFd relay, std::string tools,
                         InnerWays ways, RelayBounds bounds)
    : loop_(loop),
      shelf_(shelf),
      outer_(WithoutArguments(outer.request)),
      envelope_(outer.run.envelope),
      tools_(outer.run.tools),
      most_calls_(outer.run.tool_calls),
      ways_(std::move(ways)),
      bounds_(bounds),
      budget_(envelope_.limits, static_cast<uint32_t>(most_calls_),
              BootTime() + envelope_.limits.wall),
      relay_(std::move(relay)),
      out_(
          loop, relay_.get(), bounds.pace,
          [this] {
            if (!closed_ && reading_ == nullptr && out_.pending() <= bounds_.unread) {
              Watch();
            }
            BeginWaiting();
          },
          [this] { Close(); }) {
  Watch();
  InsideFrame first;
  first.kind = InsideFrame::Kind::kTools;
  first.body = std::move(tools);
  Send(first);
}

void CallsInside::Watch() {
  reading_ = loop_.WatchReadable(relay_.get(), [this] { Read(); });
}

// Its socket stays full meanwhile.
void CallsInside::Rest() {
  reading_ = loop_.After(kRest, [this] {
    const std::shared_ptr<void> rested = std::move(reading_);
    Watch();
  });
}

// A long frame is counted from where it is seen to be one, so that frames which never become whole are counted, too.
bool CallsInside::HasRoom() {
  if (in_.pending() > kLongFrame && in_room_ == nullptr) {
    in_room_ = ways_.hold(call::kMostInsideArgs);
    return in_room_ != nullptr;
  }
  return true;
}

void CallsInside::Read() {
  const std::shared_ptr<void> keep = reading_;  // we are running inside it
  if (!HasRoom()) {
    Rest();
    return;
  }
  static std::array<char, 65536> piece;
  const long got =
      Syscall(SYS_recvfrom, relay_.get(), Arg(piece.data()), piece.size(), MSG_DONTWAIT, 0, 0);
  if (got == -EAGAIN || got == -EINTR) {
    return;
  }
  if (got <= 0) {
    Close();
    return;
  }
  if (BootTime() - second_ >= std::chrono::seconds(1)) {
    second_ = BootTime();
    frames_ = 0;
    bytes_ = 0;
  }
  bytes_ += static_cast<size_t>(got);
  in_.Add(std::string_view(piece.data(), static_cast<size_t>(got)));
  while (!closed_) {
    Result<std::optional<InsideFrame>> next = in_.Next();
    if (!next.ok()) {
      Close();
      return;
    }
    if (!*next) {
      break;
    }
    Take({std::move(**next), std::move(in_room_)});
  }
  if (closed_) {
    return;
  }
  if (out_.pending() > bounds_.unread) {
    reading_.reset();
  } else if (frames_ > bounds_.frames || bytes_ > bounds_.bytes) {
    Rest();
  }
}

void CallsInside::Take(Waiting taken) {
  ++frames_;
  const InsideFrame& frame = taken.frame;
  if (frame.kind == InsideFrame::Kind::kCancel) {
    Cancel(frame.number);
    return;
  }
  // The relay of this build numbers its calls in order, sends nothing but names, and lets further
  // calls wait in its own memory.
  const bool too_many = running_.size() + waiting_.size() >= call::kInnerAtOnce;
  if (frame.number <= last_ || !policy::IsToolName(frame.tool) || frame.key.empty() || too_many) {
    Close();
    return;
  }
  last_ = frame.number;
  Begin(std::move(taken));
}

void CallsInside::Begin(Waiting taken) {
  if (!budget_.CountRequest()) {
    Refuse(taken.frame.number,
           fmt::format("{} calls may be made here, and were; calls.most in the manifest allows "
                       "more",
                       most_calls_));
    return;
  }
  waiting_.push_back(std::move(taken));
  BeginWaiting();
}

void CallsInside::BeginWaiting() {
  while (!closed_ && !waiting_.empty() && out_.pending() <= bounds_.unread) {
    const std::shared_ptr<const policy::Tool> tool = shelf_.Find(waiting_.front().frame.tool);
    if (tool != nullptr && !budget_.Fits(call::CountedLimits(tool->manifest.limits, *tool))) {
      return;  // the next one does not overtake it
    }
    Waiting taken = std::move(waiting_.front());
    waiting_.pop_front();
    Start(std::move(taken));
  }
}

std::shared_ptr<call::ToolRequest> CallsInside::RequestOf(const InsideFrame& frame) const {
  auto request = std::make_shared<call::ToolRequest>();
  const store::CallIdentity& by = outer_.identity;
  request->identity.tenant = by.tenant;
  request->identity.agent = by.agent;
  request->identity.user = by.user;
  request->identity.session_id = by.session_id;
  request->identity.parent_id = by.call_id;
  request->identity.tool = frame.tool;
  request->key_id = outer_.key_id;
  request->args_json = frame.body;
  request->idempotency_key = "inside:" + HashOf(by.call_id + "\n" + frame.key);
  call::TakeTrace(frame.traceparent, request->identity);
  return request;
}

void CallsInside::Start(Waiting taken) {
  const InsideFrame& frame = taken.frame;
  auto left = std::make_shared<call::OuterCall>();
  Running running;
  left->offered = std::binary_search(tools_.begin(), tools_.end(), frame.tool);
  if (left->offered) {
    running.tool = shelf_.Find(frame.tool);
  }
  const bool halves = running.tool != nullptr && call::CallsTools(*running.tool);
  Result<policy::Envelope> envelope = call::LeftForInner(envelope_, budget_, BootTime(), halves);
  if (envelope.ok()) {
    left->envelope = std::move(envelope).value();
  } else {
    left->spent = std::move(envelope.error());
  }
  if (halves) {
    left->tool_calls = budget_.TakeRequests(running.tool->manifest.calls.most);
  }
  if (running.tool != nullptr && !left->spent) {
    // Taken now: another call may begin before this one is through the ladder.
    policy::Limits most = running.tool->manifest.limits;
    most.cpu = std::min(most.cpu, left->envelope.limits.cpu);
    most.memory = std::min(most.memory, left->envelope.limits.memory);
    budget_.Begin(std::to_string(frame.number), call::CountedLimits(most, *running.tool));
  }
  running.unwanted = std::make_shared<std::atomic<bool>>(false);
  InnerCall call{frame.number, RequestOf(frame), running.unwanted, std::move(taken.room)};
  call.request->outer = std::move(left);
  running_[frame.number] = std::move(running);
  if (!ways_.begin(std::move(call))) {
    running_.erase(frame.number);
    budget_.End(std::to_string(frame.number), Nanos(0));
    Refuse(frame.number, "too many calls wait on this host; send it again later");
  }
}

void CallsInside::Runs(uint64_t number, const std::string& call_id, const policy::Limits& granted) {
  const auto found = running_.find(number);
  if (found == running_.end()) {
    return;
  }
  found->second.call_id = call_id;
  if (found->second.tool != nullptr) {
    budget_.Begin(std::to_string(number), call::CountedLimits(granted, *found->second.tool));
  }
  if (*found->second.unwanted) {
    ways_.stop(call_id);
  }
}

void CallsInside::Ended(uint64_t number, RelayFrame reply, Nanos cpu_used) {
  if (running_.erase(number) == 0) {
    return;
  }
  budget_.End(std::to_string(number), cpu_used);
  out_.Add(std::move(reply));
  BeginWaiting();
  CloseIfIdle();
}

void CallsInside::Cancel(uint64_t number) {
  if (const auto found = running_.find(number); found != running_.end()) {
    // Once: a program can cancel hundreds of times in a second, and each would be a message to the warden.
    if (!found->second.unwanted->exchange(true) && !found->second.call_id.empty()) {
      ways_.stop(found->second.call_id);
    }
    return;
  }
  const auto waits = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const Waiting& one) { return one.frame.number == number; });
  if (waits != waiting_.end()) {
    waiting_.erase(waits);
    Refuse(number, "the call was cancelled before it began");
  }
}

void CallsInside::Refuse(uint64_t number, const std::string& why) {
  InsideFrame frame;
  frame.kind = InsideFrame::Kind::kRefusal;
  frame.number = number;
  frame.body = why;
  Send(frame);
}

void CallsInside::Send(const InsideFrame& frame) { out_.Add({EncodeInsideFrame(frame), nullptr}); }

bool CallsInside::End() {
  ended_ = true;
  Close();
  return running_.empty();
}

void CallsInside::Close() {
  if (!closed_) {
    closed_ = true;
    waiting_.clear();
    out_.Drop();
    in_room_.reset();
    const std::shared_ptr<void> keep = std::move(reading_);
    for (const auto& [number, running] : running_) {
      if (!running.unwanted->exchange(true) && !running.call_id.empty()) {
        ways_.stop(running.call_id);
      }
    }
  }
  if (running_.empty()) {
    relay_.Reset();  // so that the relay knows
  }
}

void CallsInside::CloseIfIdle() {
  if (!closed_ || !running_.empty()) {
    return;
  }
  relay_.Reset();
  if (ended_) {
    ways_.idle();
  }
}

}  // namespace coffer::daemon
