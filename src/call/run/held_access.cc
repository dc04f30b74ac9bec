// SPDX-License-Identifier: Apache-2.0
#include "call/run/held_access.h"

#include <algorithm>

#include "base/clock.h"
#include "base/text.h"

namespace coffer::call {
namespace {

constexpr size_t kMostHeld = 64;  // more than one process asks for

}  // namespace

audit::AccessRequest* HeldAccess::Find(uint32_t id) {
  const auto found = std::find_if(
      requests_.begin(), requests_.end(),
      [&](const audit::AccessRequest& one) { return one.id == id && one.decision.empty(); });
  return found == requests_.end() ? nullptr : &*found;
}

void HeldAccess::OnNotice() {
  std::optional<egress::AccessNotice> notice = process_.TakeNotice(gone_);
  if (!notice) {
    return;
  }
  notice->host = Printable(notice->host);
  notice->opens = Printable(notice->opens);
  if (notice->kind == egress::AccessNotice::Kind::kAsked) {
    if (requests_.size() >= kMostHeld || Find(notice->id) != nullptr) {
      return;  // not one of ours; it gets no answer
    }
    audit::AccessRequest request;
    request.id = notice->id;
    request.host = notice->host;
    request.port = notice->port;
    request.opens = notice->opens;
    request.requested_at = WallTime();
    requests_.push_back(std::move(request));
    decider_.Ask(*notice);
    return;
  }
  if (audit::AccessRequest* const request = Find(notice->id)) {
    request->decision =
        notice->kind == egress::AccessNotice::Kind::kUnanswered ? "unanswered" : "withdrawn";
    request->decided_at = WallTime();
    decider_.Withdraw(*notice);
  }
}

void HeldAccess::OnAnswer() {
  const std::optional<AccessAnswer> answer = decider_.Read();
  audit::AccessRequest* const request = answer ? Find(answer->decision.id) : nullptr;
  if (request == nullptr) {
    return;
  }
  using egress::AccessChoice;
  const egress::AccessDecision& decision = answer->decision;
  request->decision = decision.choice == AccessChoice::kDeny ? "denied" : "granted";
  request->minutes = decision.choice == AccessChoice::kForMinutes ? decision.minutes : 0;
  request->by = Printable(answer->by);
  request->decided_at = WallTime();
  process_.Decide(decision);
}

std::vector<audit::AccessRequest> HeldAccess::Finish() {
  const Nanos now = WallTime();
  for (audit::AccessRequest& request : requests_) {
    if (request.decision.empty()) {
      request.decision = "withdrawn";
      request.decided_at = now;
    }
    if (request.decision == "granted") {
      const Nanos until = request.decided_at + std::chrono::minutes(request.minutes);
      const bool ran_out = request.minutes > 0 && until < now;
      request.ended = ran_out ? "time" : "call";
      request.ended_at = ran_out ? until : now;
    }
  }
  return std::move(requests_);
}

}  // namespace coffer::call
