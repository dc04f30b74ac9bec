// SPDX-License-Identifier: Apache-2.0
#include "daemon/relay_writer.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/sys.h"

namespace coffer::daemon {
namespace {

constexpr size_t kMostInTurn = 1 << 20;  // others have their turn of the loop, too

}  // namespace

RelayWriter::RelayWriter(net::Loop& loop, int socket, RelayPace pace, std::function<void()> went,
                         std::function<void()> lost)
    : loop_(loop), socket_(socket), pace_(pace), went_(std::move(went)), lost_(std::move(lost)) {}

void RelayWriter::Add(RelayFrame frame) {
  if (dropped_) {
    return;
  }
  pending_ += frame.bytes.size();
  frames_.push_back(std::move(frame));
  if (writing_ == nullptr && Send() != Sent::kAll) {
    Watch();  // it tells at once that the relay is gone, if it is
  }
}

void RelayWriter::Drop() {
  dropped_ = true;
  const std::shared_ptr<void> writing = std::move(writing_);  // we may be running inside them
  const std::shared_ptr<void> span = std::move(span_);
  frames_.clear();
  pending_ = 0;
}

RelayWriter::Sent RelayWriter::Send() {
  size_t sent_now = 0;
  while (!frames_.empty() && sent_now < kMostInTurn) {
    const std::string& bytes = frames_.front().bytes;
    const long sent = raw::Syscall(SYS_sendto, socket_, raw::Arg(bytes.data() + first_sent_),
                                   static_cast<long>(bytes.size() - first_sent_),
                                   MSG_NOSIGNAL | MSG_DONTWAIT, 0, 0);
    if (sent == -EINTR) {
      continue;
    }
    if (sent == -EAGAIN) {
      break;
    }
    if (sent <= 0) {
      return Sent::kGone;
    }
    sent_now += static_cast<size_t>(sent);
    first_sent_ += static_cast<size_t>(sent);
    if (first_sent_ == bytes.size()) {
      frames_.pop_front();
      first_sent_ = 0;
    }
  }
  pending_ -= sent_now;
  taken_ += sent_now;
  return frames_.empty() ? Sent::kAll : Sent::kSome;
}

void RelayWriter::Watch() {
  writing_ = loop_.WatchWritable(socket_, [this] { Continue(); });
  if (writing_ == nullptr) {  // no descriptor is left for that
    writing_ = loop_.After(std::chrono::milliseconds(0), [this] {
      Drop();
      lost_();
    });
    return;
  }
  taken_ = 0;
  span_ = loop_.After(pace_.span, [this] { CheckPace(); });
}

void RelayWriter::Continue() {
  const std::shared_ptr<void> keep = writing_;  // we are running inside it
  const Sent sent = Send();
  if (sent == Sent::kGone) {
    Drop();
    lost_();
    return;
  }
  if (sent == Sent::kAll) {
    writing_.reset();
    span_.reset();
  }
  went_();
}

void RelayWriter::CheckPace() {
  const std::shared_ptr<void> keep = std::move(span_);
  if (taken_ < pace_.least) {
    Drop();
    lost_();
    return;
  }
  taken_ = 0;
  span_ = loop_.After(pace_.span, [this] { CheckPace(); });
}

}  // namespace coffer::daemon
