// SPDX-License-Identifier: Apache-2.0
//
// The egress process of a call: the only thing that dials for it.
//
// Without a daemon it is a `cofferd` of the call's own (ADR 38): it starts beside the boundary,
// only for a call with rules, and ends with the call. In the daemon it is the role that serves all
// calls (daemon/call_egress_role.h, ADR 49). Either way the supervisor gives it the grants, and
// later the listeners in the boundary's network, and hears from it on a socket of this call alone.
// Nothing else leads from the boundary to it, and the boundary has no other route: if the process
// dies, connections inside are refused, and the call ends with egress.ended.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "call/run/egress_messages.h"
#include "egress/listeners.h"
#include "policy/egress_texts.h"

namespace coffer::call {

class EgressProcess {
 public:
  // No process.
  EgressProcess() = default;
  EgressProcess(EgressProcess&& other) noexcept;
  EgressProcess& operator=(EgressProcess&& other) noexcept;
  ~EgressProcess();  // ends it, or what the role does for this call

  // Long enough for a loaded machine. A process that fails dies much earlier.
  static constexpr Nanos kMostPatience = std::chrono::seconds(20);
  // Does not wait for it. Fails if there is no cofferd. A process that is not ready when `patience`
  // is over counts as failed.
  static Result<EgressProcess> Start(const EgressOrder& order, Nanos patience = kMostPatience);
  // The role at the other end of `door`, which the caller owns, serves the call. Does not wait for it.
  static Result<EgressProcess> Ask(int door, const EgressOrder& order,
                                   Nanos patience = kMostPatience);

  // While `fd` can be read, waiting for the process fails at once. The caller owns it; -1: none.
  void StopWaitingWhen(int fd) { stop_fd_ = fd; }
  // Waits for the certificate of the boundary's CA in PEM, or "" if no rule needs one. Not after AwaitReady.
  Result<std::string> AwaitAuthority() { return Await('K'); }
  // Waits until it is confined and ready.
  Result<std::string> AwaitReady() { return Await('R'); }
  // Sockets that listen inside. The caller closes its own copies, so that no connection waits for a dead process.
  Status GiveListeners(const egress::Listeners& listeners);

  // A notice about access that is asked for may wait here; -1: the process is gone.
  int notice_fd() const { return control_.get(); }
  // One notice, if one waits. Sets `gone` if the process has ended.
  std::optional<egress::AccessNotice> TakeNotice(bool& gone);
  // Never waits: a process that does not read loses it.
  void Decide(const egress::AccessDecision& decision);

  struct End {
    EgressLog log;
    bool early = false;  // it was dead before it was told to end: the log may lack what it did last
  };
  // Tells it to end and does not wait. Nothing of the boundary is left, and no decision comes any more.
  void BeginEnd();
  // Waits for its end, after BeginEnd. A process of its own is dead then, and is gone when this object is.
  End Finish();

  bool running() const { return static_cast<bool>(control_); }

 private:
  Result<std::string> Await(char word);
  struct Given {
    UniqueFd control, order;  // the process's ends; its log is `log_`
  };
  Result<Given> MakeChannel(const EgressOrder& order);
  bool HearEnd();

  pid_t pid_ = -1;  // of a process of its own
  Nanos ready_by_{0};
  int stop_fd_ = -1;
  UniqueFd control_;
  UniqueFd log_;
};

}  // namespace coffer::call
