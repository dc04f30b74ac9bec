// SPDX-License-Identifier: Apache-2.0
#include "daemon/running_call.h"

#include <fcntl.h>

namespace coffer::daemon {

using gateway::CallEvent;

namespace {
// A call has 32 questions. The bound is for a runner that does not keep to it.
constexpr uint32_t kMostAsked = 32;
}  // namespace

RunningCall::RunningCall(net::Loop& loop, std::shared_ptr<EventRoom> room, call::ReadyCall ready,
                         call::RunChannels channels, Hooks hooks)
    : ready_(std::move(ready)),
      log_(std::make_shared<EventLog>(std::move(room))),
      collector_(
          std::move(channels),
          [log = log_, printed = hooks.printed](call::Stream stream, std::string_view piece) {
            if (printed) {
              printed(piece);
            }
            log->AddOutput(
                stream == call::Stream::kOut ? CallEvent::Kind::kStdout : CallEvent::Kind::kStderr,
                piece);
          }),
      hooks_(std::move(hooks)) {
  log_->AddState("running");
  for (size_t i = 0; i < watches_.size(); ++i) {
    ::fcntl(collector_.fd(i), F_SETFL, O_NONBLOCK);
    watches_[i] = loop.WatchReadable(collector_.fd(i), [this, i] { Read(i); });
  }
}

void RunningCall::Read(size_t channel) {
  collector_.Read(channel);
  TellAsked();
  if (collector_.fd(channel) >= 0) {
    return;
  }
  const std::shared_ptr<void> keep = std::move(watches_[channel]);  // we are running inside it
  if (collector_.done()) {
    hooks_.done();
  }
}

// Numbers only grow, so no number is sent twice.
void RunningCall::TellAsked() {
  for (const egress::AccessNotice& notice : collector_.waiting()) {
    if (notice.id > last_asked_ && asked_ < kMostAsked && hooks_.asked) {
      last_asked_ = notice.id;
      ++asked_;
      hooks_.asked(notice);
    }
  }
}

}  // namespace coffer::daemon
