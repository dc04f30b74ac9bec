// SPDX-License-Identifier: Apache-2.0
//
// The egress process of one call of `coffer run --allow`: the only thing that dials for it (ADR 38).
//
// It is `cofferd` in the role of daemon/egress_call.h: it starts beside the boundary, only for a call with rules, and ends
// with the call. The supervisor gives it the grants, and later the listeners in the boundary's network. Nothing
// else leads from the boundary to it, and the boundary has no other route: if the process dies, connections inside are
// refused, and the call ends with egress.ended.
#pragma once

#include <sys/types.h>

#include <string>

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
  ~EgressProcess();  // ends it

  // Does not wait for it. Fails if there is no cofferd.
  static Result<EgressProcess> Start(const policy::EgressTexts& grants);

  // Waits until it is confined and ready. The certificate of the boundary's CA in PEM, or "" if no rule needs one.
  Result<std::string> AwaitReady();
  // Sockets that listen inside. The caller closes its own copies, so that no connection waits for a dead process.
  Status GiveListeners(const egress::Listeners& listeners);

  struct End {
    EgressLog log;
    bool early =
        false;  // it was dead before it was told to end: what it did last is not in the log
  };
  // Ends it, once nothing of the boundary is left.
  End Finish();

  bool running() const { return pid_ > 0; }

 private:
  pid_t pid_ = -1;
  UniqueFd control_;
  UniqueFd log_;
};

}  // namespace coffer::call
