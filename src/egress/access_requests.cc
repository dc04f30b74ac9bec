// SPDX-License-Identifier: Apache-2.0
#include "egress/access_requests.h"

#include <fmt/format.h>

#include <algorithm>

#include "egress/address_guard.h"

namespace coffer::egress {
namespace {

using policy::EgressRule;
using policy::HostAndPort;

constexpr std::chrono::seconds kLook{1};  // how often a waiting program is looked for

// The rule, for one host and port.
std::string OpensText(const EgressRule& rule, const HostAndPort& to) {
  EgressRule narrow = rule;
  narrow.host = policy::HostPattern::Exactly(to.host);
  narrow.ports = {{to.port, to.port}};
  return narrow.text();
}

AccessVerdict RefusedBy(const policy::EgressVerdict& verdict, std::string reason,
                        std::string message) {
  AccessVerdict admission;
  admission.reason = std::move(reason);
  admission.message = std::move(message);
  admission.fix = verdict.fix;
  return admission;
}

}  // namespace

AccessRequests::AccessRequests(const net::IoExecutor& executor, uint32_t hold_seconds,
                               AccessNotifier notify, Nanos minute)
    : executor_(executor),
      hold_seconds_(hold_seconds),
      notify_(std::move(notify)),
      minute_(minute) {}

net::Task<AccessVerdict> AccessRequests::Admit(policy::EgressVerdict verdict, HostAndPort to,
                                               std::function<bool()> gone) {
  if (verdict.allowed()) {
    AccessVerdict admission;
    admission.rule = verdict.rule;
    admission.rule_text = verdict.rule->text();
    co_return admission;
  }
  // What no answer could open is not asked for.
  if (verdict.asks == nullptr || to.host.address() || ObjectToHostName(to.host)) {
    co_return RefusedBy(verdict, verdict.reason, verdict.message);
  }
  const std::string shown = to.text();
  if (hold_seconds_ == 0) {
    co_return RefusedBy(verdict, "access_unanswered",
                        fmt::format("{} may be asked for, and there is no person to ask here: only "
                                    "the daemon has operators",
                                    shown));
  }
  const Place place{verdict.asks, to.host.text(), to.port};
  std::shared_ptr<Request> request = Find(place);
  if (request == nullptr) {
    std::string refusal;
    request = Open(place, OpensText(*verdict.asks, to), refusal);
    if (request == nullptr) {
      co_return RefusedBy(verdict, "access_unanswered", fmt::format("{}: {}", shown, refusal));
    }
  }
  if (request->state == Request::State::kOpen) {
    co_await Await(place, request, gone);
  }
  if (request->state == Request::State::kGranted) {
    AccessVerdict admission;
    admission.rule = verdict.asks;
    admission.until = request->until;
    admission.rule_text =
        fmt::format("granted: {} for {}", OpensText(*verdict.asks, to),
                    request->minutes == 0 ? "this call" : fmt::format("{} min", request->minutes));
    co_return admission;
  }
  const bool denied = request->state == Request::State::kDenied;
  co_return RefusedBy(verdict, denied ? "access_denied" : "access_unanswered",
                      denied ? fmt::format("access to {} was asked for and denied", shown)
                             : fmt::format("access to {} was asked for and not answered", shown));
}

// The decided or pending request for this place. A grant whose time is over does not count.
std::shared_ptr<AccessRequests::Request> AccessRequests::Find(const Place& place) {
  const auto found = requests_.find(place);
  if (found == requests_.end()) {
    return nullptr;
  }
  const Request& request = *found->second;
  if (request.state == Request::State::kGranted && request.until.count() != 0 &&
      request.until <= BootTime()) {
    requests_.erase(found);
    return nullptr;
  }
  return found->second;
}

std::shared_ptr<AccessRequests::Request> AccessRequests::Open(const Place& place, std::string opens,
                                                              std::string& refusal) {
  if (ended_) {
    refusal = "the call ends";
    return nullptr;
  }
  if (made_ >= kMostRequests) {
    refusal =
        fmt::format("this call has asked for access {} times, and may not again", kMostRequests);
    return nullptr;
  }
  if (open_ >= kMostWaiting) {
    refusal = fmt::format("{} requests for access wait for an answer already", kMostWaiting);
    return nullptr;
  }
  auto request = std::make_shared<Request>();
  request->id = ++made_;
  if (!notify_({AccessNotice::Kind::kAsked, request->id, std::get<1>(place), std::get<2>(place),
                std::move(opens)})) {
    refusal = "it cannot be asked for now";
    return nullptr;
  }
  ++open_;
  requests_[place] = request;
  return request;
}

// Until it is decided. The request of a program that no longer waits is taken back; it may ask again.
net::Task<void> AccessRequests::Await(const Place& place, std::shared_ptr<Request> request,
                                      const std::function<bool()>& gone) {
  const Clock::time_point last = Clock::now() + std::chrono::seconds(hold_seconds_);
  Timer timer(executor_);
  const auto mine = request->waiting.insert(request->waiting.end(), &timer);
  bool left = false;
  while (request->state == Request::State::kOpen && !left && !ended_ && Clock::now() < last) {
    timer.expires_at(std::min(last, Clock::now() + kLook));
    (void)co_await timer.async_wait(net::kAwaitTuple);
    left = gone();
  }
  request->waiting.erase(mine);
  if (request->state != Request::State::kOpen) {
    co_return;
  }
  if (!left && !ended_) {
    request->state = Request::State::kUnanswered;
    --open_;
    (void)notify_({AccessNotice::Kind::kUnanswered, request->id, "", 0, ""});
    Wake(*request);
  } else if (request->waiting.empty()) {
    request->state = Request::State::kUnanswered;
    --open_;
    requests_.erase(place);
    (void)notify_({AccessNotice::Kind::kGone, request->id, "", 0, ""});
  }
}

void AccessRequests::Wake(Request& request) {
  for (Timer* const timer : request.waiting) {
    timer->cancel();
  }
}

void AccessRequests::Decide(const AccessDecision& decision) {
  const auto found = std::find_if(requests_.begin(), requests_.end(), [&](const auto& one) {
    return one.second->id == decision.id && one.second->state == Request::State::kOpen;
  });
  if (found == requests_.end()) {
    return;
  }
  Request& request = *found->second;
  const bool timed = decision.choice == AccessChoice::kForMinutes;
  const bool granted = decision.choice == AccessChoice::kForCall ||
                       (timed && decision.minutes >= 1 && decision.minutes <= kMostAccessMinutes);
  --open_;
  request.state = granted ? Request::State::kGranted : Request::State::kDenied;
  if (granted && timed) {
    request.minutes = decision.minutes;
    request.until = BootTime() + decision.minutes * minute_;
  }
  Wake(request);
}

void AccessRequests::End() {
  ended_ = true;
  for (const auto& [place, request] : requests_) {
    Wake(*request);
  }
}

}  // namespace coffer::egress
