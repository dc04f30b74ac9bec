// SPDX-License-Identifier: Apache-2.0
//
// Access that a call asks for while it runs. The supervisor reads the requests of the egress process, passes them to
// the decider, sends the decision back, and lists requests and decisions in the receipt.
//
// The process that asks parses bytes of the payload, so what it says is hostile: names are printed
// only as printable text, and no more is kept than kMostListed requests. A decision goes back for a
// request that is open; the process itself gives no more than its rules with `ask` cover
// (egress/access_requests.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "audit/receipt.h"
#include "call/run/egress_process.h"
#include "egress/access.h"

namespace coffer::call {

struct AccessAnswer {
  egress::AccessDecision decision;
  std::string by;  // the decider, for the receipt
};

// The decider: a person at the terminal, or the operators of a daemon. No method waits.
class AccessDecider {
 public:
  virtual ~AccessDecider() = default;
  virtual void Ask(const egress::AccessNotice& asked) = 0;
  // The call no longer waits for the answer.
  virtual void Withdraw(const egress::AccessNotice& over) = 0;
  // Readable when an answer may have come; -1: none can come.
  virtual int fd() const = 0;
  virtual std::optional<AccessAnswer> Read() = 0;
  // A question is shown on the caller's terminal, so the command's output and input must wait.
  virtual bool holds_terminal() const = 0;
};

class HeldAccess {
 public:
  // Both outlive it.
  HeldAccess(EgressProcess& process, AccessDecider& decider)
      : process_(process), decider_(decider) {}

  int notice_fd() const { return gone_ ? -1 : process_.notice_fd(); }
  int decider_fd() const { return gone_ ? -1 : decider_.fd(); }
  bool holds_terminal() const { return !gone_ && decider_.holds_terminal(); }
  void OnNotice();
  void OnAnswer();
  // After the call's end, which ends open requests too.
  std::vector<audit::AccessRequest> Finish();

 private:
  audit::AccessRequest* Find(uint32_t id);

  EgressProcess& process_;
  AccessDecider& decider_;
  std::vector<audit::AccessRequest> requests_;
  bool gone_ = false;
};

}  // namespace coffer::call
