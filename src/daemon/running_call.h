// SPDX-License-Identifier: Apache-2.0
//
// A call that was launched: reads what its runner sends, on the gateway's loop, until all of it has come.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "call/ladder.h"
#include "call/warden/launcher.h"
#include "daemon/event_log.h"
#include "net/loop.h"

namespace coffer::daemon {

class RunningCall {
 public:
  // `printed`, unless it is empty, sees all output as it comes. `done` is called once, when all three channels have ended.
  // Both on the loop.
  RunningCall(net::Loop& loop, std::shared_ptr<EventRoom> room, call::ReadyCall ready,
              call::RunChannels channels, std::function<void(std::string_view)> printed,
              std::function<void()> done);

  const call::ReadyCall& ready() const { return ready_; }
  std::shared_ptr<EventLog> shared_log() const { return log_; }
  // What came; once, after `done`.
  call::Collected Take();

 private:
  struct Channel {
    UniqueFd fd;
    std::shared_ptr<void> watch;
    std::string* into = nullptr;
    size_t limit = 0;
  };
  void Watch(net::Loop& loop, Channel& channel, UniqueFd fd, std::string* into, size_t limit);
  void Read(Channel& channel);

  call::ReadyCall ready_;
  std::shared_ptr<EventLog> log_;
  call::Collected collected_;
  std::string report_;
  Channel out_, err_, report_channel_;
  std::function<void(std::string_view)> printed_;
  std::function<void()> done_;
};

}  // namespace coffer::daemon
