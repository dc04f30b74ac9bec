// SPDX-License-Identifier: Apache-2.0
//
// A call that was launched: reads what its runner sends, on the gateway's loop, until all of it has come.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "call/ladder.h"
#include "call/warden/collect.h"
#include "call/warden/launcher.h"
#include "daemon/event_log.h"
#include "net/loop.h"

namespace coffer::daemon {

class RunningCall {
 public:
  // All on the loop, and what is empty is left out.
  struct Hooks {
    std::function<void(std::string_view)> printed;           // all output as it comes
    std::function<void(const egress::AccessNotice&)> asked;  // access that it waits for, each once
    std::function<void()> done;  // once, when all three channels have ended
  };
  RunningCall(net::Loop& loop, std::shared_ptr<EventRoom> room, call::ReadyCall ready,
              call::RunChannels channels, Hooks hooks);

  const call::ReadyCall& ready() const { return ready_; }
  std::shared_ptr<EventLog> shared_log() const { return log_; }
  // Access that it waits for, and an answer to one of them: false if it is gone.
  const std::vector<egress::AccessNotice>& waiting() const { return collector_.waiting(); }
  bool Answer(const call::AccessAnswer& answer) { return collector_.Answer(answer); }
  // What came; once, after `done`.
  call::Collected Take() { return collector_.Take(); }

 private:
  void Read(size_t channel);
  void TellAsked();

  call::ReadyCall ready_;
  std::shared_ptr<EventLog> log_;
  call::Collector collector_;
  std::array<std::shared_ptr<void>, call::Collector::kChannels> watches_;
  Hooks hooks_;
  uint32_t last_asked_ = 0;  // the number of the last request for access that was told
  uint32_t asked_ = 0;       // how many were
};

}  // namespace coffer::daemon
