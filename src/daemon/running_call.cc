// SPDX-License-Identifier: Apache-2.0
#include "daemon/running_call.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include <array>

#include "base/sys.h"
#include "call/warden/collect.h"

namespace coffer::daemon {

RunningCall::RunningCall(net::Loop& loop, std::shared_ptr<EventRoom> room, call::ReadyCall ready,
                         call::RunChannels channels, std::function<void(std::string_view)> printed,
                         std::function<void()> done)
    : ready_(std::move(ready)),
      log_(std::make_shared<EventLog>(std::move(room))),
      printed_(std::move(printed)),
      done_(std::move(done)) {
  log_->AddState("running");
  Watch(loop, out_, std::move(channels.out), &collected_.stdout_text, call::kMaxCollected);
  Watch(loop, err_, std::move(channels.err), &collected_.stderr_text, call::kMaxCollected);
  Watch(loop, report_channel_, std::move(channels.report), &report_, call::kMaxWireBytes);
}

void RunningCall::Watch(net::Loop& loop, Channel& channel, UniqueFd fd, std::string* into,
                        size_t limit) {
  ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
  channel.fd = std::move(fd);
  channel.into = into;
  channel.limit = limit;
  channel.watch = loop.WatchReadable(channel.fd.get(), [this, &channel] { Read(channel); });
}

void RunningCall::Read(Channel& channel) {
  std::array<char, 65536> buffer;
  const long got = raw::Syscall(SYS_read, channel.fd.get(), raw::Arg(buffer.data()), buffer.size());
  if (got == -EAGAIN || got == -EINTR) {
    return;
  }
  if (got > 0 && channel.into->size() + static_cast<size_t>(got) <= channel.limit) {
    const std::string_view piece(buffer.data(), static_cast<size_t>(got));
    channel.into->append(piece);
    if (&channel != &report_channel_) {
      if (printed_) {
        printed_(piece);
      }
      log_->AddOutput(
          &channel == &out_ ? gateway::CallEvent::Kind::kStdout : gateway::CallEvent::Kind::kStderr,
          piece);
    }
    return;
  }
  const std::shared_ptr<void> keep = std::move(channel.watch);  // we are running inside it
  channel.fd.Reset();
  if (!out_.fd && !err_.fd && !report_channel_.fd) {
    done_();
  }
}

call::Collected RunningCall::Take() {
  collected_.report = call::ReadReport(report_);
  return std::move(collected_);
}

}  // namespace coffer::daemon
