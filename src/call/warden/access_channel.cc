// SPDX-License-Identifier: Apache-2.0
#include "call/warden/access_channel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>

#include "base/sys.h"

namespace coffer::call {
namespace {

using egress::AccessChoice;
using egress::AccessNotice;
using raw::Arg;
using raw::Syscall;

template <size_t kSize>
void PutText(const std::string& text, char (&place)[kSize]) {
  memcpy(place, text.data(), std::min(text.size(), kSize - 1));
}

template <size_t kSize>
std::string GetText(const char (&place)[kSize]) {
  return {place, strnlen(place, kSize)};
}

// All of it or nothing: half a message would be taken for another one.
template <typename T>
bool SendWhole(int socket, const T& message) {
  return Syscall(SYS_sendto, socket, Arg(&message), sizeof(message), MSG_DONTWAIT | MSG_NOSIGNAL, 0,
                 0) == static_cast<long>(sizeof(message));
}

}  // namespace

AccessFrame FrameOf(const AccessNotice& notice) {
  AccessFrame frame;
  frame.kind = static_cast<uint32_t>(notice.kind);
  frame.id = notice.id;
  frame.port = notice.port;
  PutText(notice.host, frame.host);
  PutText(notice.opens, frame.opens);
  return frame;
}

std::optional<AccessNotice> NoticeOf(const AccessFrame& frame) {
  AccessNotice notice;
  if (frame.magic != AccessFrame{}.magic || frame.port > 65535 ||
      frame.kind > static_cast<uint32_t>(AccessNotice::Kind::kGone)) {
    return std::nullopt;
  }
  notice.kind = static_cast<AccessNotice::Kind>(frame.kind);
  notice.id = frame.id;
  notice.port = static_cast<uint16_t>(frame.port);
  notice.host = GetText(frame.host);
  notice.opens = GetText(frame.opens);
  return notice;
}

bool SendAccessReply(int socket, const AccessAnswer& answer) {
  AccessReply reply;
  reply.id = answer.decision.id;
  reply.choice = static_cast<uint32_t>(answer.decision.choice);
  reply.minutes = answer.decision.minutes;
  PutText(answer.by, reply.by);
  return SendWhole(socket, reply);
}

void ChannelAccess::Send(const AccessNotice& notice) {
  // A gateway that does not read gives no answer, which is a denial.
  broken_ = broken_ || !SendWhole(socket_, FrameOf(notice));
}

std::optional<AccessAnswer> ChannelAccess::Read() {
  std::array<char, sizeof(AccessReply)> bytes;
  const long got = Syscall(SYS_recvfrom, socket_, Arg(bytes.data()), bytes.size() - read_.size(),
                           MSG_DONTWAIT, 0, 0);
  if (got <= 0) {
    broken_ = got != -EAGAIN && got != -EINTR;
    return std::nullopt;
  }
  read_.append(bytes.data(), static_cast<size_t>(got));
  if (read_.size() < sizeof(AccessReply)) {
    return std::nullopt;
  }
  AccessReply reply;
  memcpy(&reply, read_.data(), sizeof(reply));
  read_.clear();
  if (reply.magic != AccessReply{}.magic ||
      reply.choice > static_cast<uint32_t>(AccessChoice::kForMinutes)) {
    broken_ = true;
    return std::nullopt;
  }
  return AccessAnswer{{reply.id, static_cast<AccessChoice>(reply.choice), reply.minutes},
                      GetText(reply.by)};
}

}  // namespace coffer::call
