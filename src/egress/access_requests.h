// SPDX-License-Identifier: Apache-2.0
//
// Access that one boundary asks for: a connection that only a rule with `ask` covers waits until a person has decided.
//
// What is granted is that rule for exactly the host and port that were asked for, until a time or
// the call's end. Only a request that is open here can be granted, and only a rule with `ask` opens
// one: the sender of decisions, also a gateway that was broken into, cannot open anything else.
// Several connections to the same place are one request. A denial, and no answer in time, hold for
// the rest of the call, and a call has kMostRequests of them: a program cannot ask until a person
// gives in.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "base/clock.h"
#include "egress/access.h"
#include "net/asio.h"
#include "policy/egress_rule.h"

namespace coffer::egress {

// How a connection or request was judged, after a person was asked if that was needed.
struct AccessVerdict {
  const policy::EgressRule* rule = nullptr;  // null: refused
  std::string rule_text;
  Nanos until{0};  // of BootTime(): when it has to end; 0: never
  std::string reason;
  std::string message;
  std::string fix;
};

class AccessRequests {
 public:
  static constexpr size_t kMostRequests = 32;  // of one call
  static constexpr size_t kMostWaiting = 8;    // at once

  // `hold_seconds` 0: there is no person to ask. `minute` is another one in tests.
  AccessRequests(const net::IoExecutor& executor, uint32_t hold_seconds, AccessNotifier notify,
                 Nanos minute = std::chrono::minutes(1));

  // `verdict` is about `to`. Waits only if a person is asked; `gone` says whether the program still waits.
  net::Task<AccessVerdict> Admit(policy::EgressVerdict verdict, policy::HostAndPort to,
                                 std::function<bool()> gone);
  // For a request that is open; any other decision changes nothing.
  void Decide(const AccessDecision& decision);
  // No request waits any longer, and none is made.
  void End();

 private:
  using Clock = std::chrono::steady_clock;
  using Timer =
      net::asio::basic_waitable_timer<Clock, net::asio::wait_traits<Clock>, net::IoExecutor>;
  using Place = std::tuple<const policy::EgressRule*, std::string, uint16_t>;
  struct Request {
    enum class State : uint8_t { kOpen, kDenied, kUnanswered, kGranted };
    uint32_t id = 0;
    State state = State::kOpen;
    uint32_t minutes = 0;  // granted: 0 is for the call
    Nanos until{0};
    std::list<Timer*> waiting;
  };

  std::shared_ptr<Request> Find(const Place& place);
  std::shared_ptr<Request> Open(const Place& place, std::string opens, std::string& refusal);
  net::Task<void> Await(const Place& place, std::shared_ptr<Request> request,
                        const std::function<bool()>& gone);
  static void Wake(Request& request);

  const net::IoExecutor executor_;
  const uint32_t hold_seconds_;
  const AccessNotifier notify_;
  const Nanos minute_;
  std::map<Place, std::shared_ptr<Request>> requests_;
  uint32_t made_ = 0;
  size_t open_ = 0;
  bool ended_ = false;
};

}  // namespace coffer::egress
