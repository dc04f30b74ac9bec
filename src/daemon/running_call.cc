// SPDX-License-Identifier: Apache-2.0
#include "daemon/running_call.h"

#include <fcntl.h>

namespace coffer::daemon {

using gateway::CallEvent;

RunningCall::RunningCall(net::Loop& loop, std::shared_ptr<EventRoom> room, call::ReadyCall ready,
                         call::RunChannels channels, std::function<void(std::string_view)> printed,
                         std::function<void()> done)
    : ready_(std::move(ready)),
      log_(std::make_shared<EventLog>(std::move(room))),
      collector_(
          std::move(channels),
          [log = log_, printed = std::move(printed)](call::Stream stream, std::string_view piece) {
            if (printed) {
              printed(piece);
            }
            log->AddOutput(
                stream == call::Stream::kOut ? CallEvent::Kind::kStdout : CallEvent::Kind::kStderr,
                piece);
          }),
      done_(std::move(done)) {
  log_->AddState("running");
  for (size_t i = 0; i < watches_.size(); ++i) {
    ::fcntl(collector_.fd(i), F_SETFL, O_NONBLOCK);
    watches_[i] = loop.WatchReadable(collector_.fd(i), [this, i] { Read(i); });
  }
}

void RunningCall::Read(size_t channel) {
  collector_.Read(channel);
  if (collector_.fd(channel) >= 0) {
    return;
  }
  const std::shared_ptr<void> keep = std::move(watches_[channel]);  // we are running inside it
  if (collector_.done()) {
    done_();
  }
}

}  // namespace coffer::daemon
