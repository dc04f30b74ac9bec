// SPDX-License-Identifier: Apache-2.0
#include "egress/deliver_protocol.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>

#include "base/sys.h"

namespace coffer::egress {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr uint32_t kLongestAskedRetry = 24 * 3600;

Error MalformedMessage(const char* what) {
  return Internal("internal.wire", std::string("a malformed message from another role: ") + what);
}

// NUL-terminated visible ASCII, not empty.
template <size_t kSize>
bool IsWord(const char (&text)[kSize]) {
  const size_t length = ::strnlen(text, kSize);
  return length > 0 && length < kSize &&
         std::all_of(text, text + length, [](char c) { return c > ' ' && c < 0x7f; });
}

long SendMessage(int socket, const iovec* parts, size_t count, int flags) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts);
  message.msg_iovlen = count;
  long sent = 0;
  do {
    sent = Syscall(SYS_sendmsg, socket, Arg(&message), flags | MSG_NOSIGNAL);
  } while (sent == -EINTR);
  return sent;
}

// How many bytes; -EMSGSIZE for a message that is longer than the parts, or that brings descriptors.
long Receive(int socket, iovec* parts, size_t count, int flags) {
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = count;
  long got = 0;
  do {
    got = Syscall(SYS_recvmsg, socket, Arg(&message), flags | MSG_CMSG_CLOEXEC);
  } while (got == -EINTR);
  return got >= 0 && (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 ? -EMSGSIZE : got;
}

}  // namespace

std::string_view DeliverResultText(DeliverResult result) {
  switch (result) {
    case DeliverResult::kAnswered:
      return "it answered";
    case DeliverResult::kUnreachable:
      return "it cannot be reached";
    case DeliverResult::kForbidden:
      return "its name leads to an address of this host or network that it may not lead to";
    case DeliverResult::kUntrusted:
      return "its certificate is not trusted";
    case DeliverResult::kTimeout:
      return "it did not answer in time";
    case DeliverResult::kUnknown:
      return "the egress role does not know it";
    case DeliverResult::kBusy:
      return "the egress role is busy";
  }
  return "the cause is unknown";
}

Result<bool> SendDelivery(int socket, const DeliverHeader& header, std::string_view body) {
  if (body.size() > kMaxDeliverBody || header.size != body.size() || !IsWord(header.receiver) ||
      !IsWord(header.id)) {
    return Internal("internal.wire", "something that cannot be sent");
  }
  const iovec parts[] = {{const_cast<DeliverHeader*>(&header), sizeof(header)},
                         {const_cast<char*>(body.data()), body.size()}};
  const long sent = SendMessage(socket, parts, 2, MSG_DONTWAIT);
  if (sent == -EAGAIN || sent == -ENOBUFS) {
    return false;
  }
  if (sent != static_cast<long>(sizeof(header) + body.size())) {
    return sys::ErrnoError("internal.wire", "cannot reach another role", sent < 0 ? sent : -EIO);
  }
  return true;
}

Result<ReceivedDelivery> ReceiveDelivery(int socket) {
  ReceivedDelivery received;
  received.body.resize(kMaxDeliverBody);
  iovec parts[] = {{&received.header, sizeof(received.header)},
                   {received.body.data(), received.body.size()}};
  const long got = Receive(socket, parts, 2, 0);
  if (got == 0) {
    received.ended = true;
    return received;
  }
  if (got < 0 && got != -EMSGSIZE) {
    return sys::ErrnoError("internal.wire", "cannot hear another role", got);
  }
  const DeliverHeader expected;
  const DeliverHeader& header = received.header;
  if (got < static_cast<long>(sizeof(header)) || header.size > kMaxDeliverBody ||
      got != static_cast<long>(sizeof(header) + header.size)) {
    return MalformedMessage("its size");
  }
  if (header.magic != expected.magic || header.version != expected.version ||
      header.reserved != 0 || header.time < 0 || !IsWord(header.receiver) || !IsWord(header.id)) {
    return MalformedMessage("its header");
  }
  received.body.resize(header.size);
  return received;
}

Status SendAnswer(int socket, const DeliverAnswer& answer) {
  const iovec part{const_cast<DeliverAnswer*>(&answer), sizeof(answer)};
  const long sent = SendMessage(socket, &part, 1, 0);
  if (sent != static_cast<long>(sizeof(answer))) {
    return sys::ErrnoError("internal.wire", "cannot reach another role", sent < 0 ? sent : -EIO);
  }
  return {};
}

Result<ReceivedAnswer> ReceiveAnswer(int socket) {
  ReceivedAnswer received;
  iovec part{&received.answer, sizeof(received.answer)};
  const long got = Receive(socket, &part, 1, MSG_DONTWAIT);
  if (got == -EAGAIN) {
    received.none = true;
    return received;
  }
  if (got == 0) {
    received.ended = true;
    return received;
  }
  const DeliverAnswer expected;
  const DeliverAnswer& answer = received.answer;
  if (got != static_cast<long>(sizeof(answer))) {
    return MalformedMessage("its size");
  }
  const bool answered = answer.result == static_cast<uint32_t>(DeliverResult::kAnswered);
  const bool known = answer.result >= static_cast<uint32_t>(DeliverResult::kAnswered) &&
                     answer.result <= static_cast<uint32_t>(DeliverResult::kBusy);
  const bool status = answered ? answer.status >= 100 && answer.status <= 599 : answer.status == 0;
  if (answer.magic != expected.magic || answer.version != expected.version ||
      answer.reserved != 0 || !known || !status || answer.retry_after > kLongestAskedRetry) {
    return MalformedMessage("its answer");
  }
  return received;
}

}  // namespace coffer::egress
