// SPDX-License-Identifier: Apache-2.0
#include "isolation/netlink_request.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>

#include "base/sys.h"

namespace coffer::isolation {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr size_t kListPart = 32 << 10;  // more than the kernel puts into one part of a list

template <typename T>
std::string_view RawBytes(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

// The first error in one datagram of answers; `acknowledged` counts those that say that all went well.
long ErrorIn(std::string_view answers, int& acknowledged) {
  while (answers.size() >= sizeof(nlmsghdr)) {
    nlmsghdr header;
    memcpy(&header, answers.data(), sizeof(header));
    if (header.nlmsg_len < sizeof(header) || header.nlmsg_len > answers.size()) {
      break;
    }
    if (header.nlmsg_type == NLMSG_ERROR && header.nlmsg_len >= NLMSG_LENGTH(sizeof(int))) {
      int error = 0;
      memcpy(&error, answers.data() + NLMSG_HDRLEN, sizeof(error));
      if (error != 0) {
        return error;
      }
      ++acknowledged;
    }
    answers.remove_prefix(std::min<size_t>(NLMSG_ALIGN(header.nlmsg_len), answers.size()));
  }
  return 0;
}

}  // namespace

void NetlinkRequest::Begin(uint16_t type, uint16_t flags, std::string_view header) {
  EndMessage();
  message_ = bytes_.size();
  nlmsghdr head{};
  head.nlmsg_type = type;
  head.nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | flags);
  head.nlmsg_seq = ++messages_;
  bytes_ += RawBytes(head);
  bytes_ += header;
  bytes_.resize(NLMSG_ALIGN(bytes_.size()));
}

void NetlinkRequest::EndMessage() {
  if (messages_ > 0) {
    const auto length = static_cast<uint32_t>(bytes_.size() - message_);
    memcpy(bytes_.data() + message_, &length, sizeof(length));
  }
}

void NetlinkRequest::Add(uint16_t type, std::string_view value) {
  const nlattr head{static_cast<uint16_t>(NLA_HDRLEN + value.size()), type};
  bytes_ += RawBytes(head);
  bytes_ += value;
  bytes_.resize(NLA_ALIGN(bytes_.size()));
}

void NetlinkRequest::AddBigEndian(uint16_t type, uint32_t value) {
  const uint32_t swapped = htonl(value);
  Add(type, RawBytes(swapped));
}

void NetlinkRequest::AddText(uint16_t type, std::string_view value) {
  Add(type, std::string(value) + '\0');
}

size_t NetlinkRequest::BeginNested(uint16_t type) {
  const size_t begun = bytes_.size();
  Add(type | NLA_F_NESTED, {});
  return begun;
}

void NetlinkRequest::EndNested(size_t begun) {
  const auto length = static_cast<uint16_t>(bytes_.size() - begun);
  memcpy(bytes_.data() + begun, &length, sizeof(length));
}

Status NetlinkRequest::SendBytes(int socket, const char* what) {
  EndMessage();
  const long sent =
      Syscall(SYS_sendto, socket, Arg(bytes_.data()), static_cast<long>(bytes_.size()), 0, 0, 0);
  return sent < 0 ? Status(sys::ErrnoError("isolation.netlink", what, sent)) : Status();
}

// A list comes in several parts. The kernel makes the next one when the one before is read.
Result<std::string> NetlinkRequest::Ask(int socket, const char* what) {
  TRY(SendBytes(socket, what));
  std::string list;
  for (;;) {
    alignas(nlmsghdr) char part[kListPart];
    const long got = Syscall(SYS_recvfrom, socket, Arg(part), sizeof(part), MSG_DONTWAIT, 0, 0);
    if (got == -EAGAIN && !list.empty()) {
      return list;
    }
    if (got < 0) {
      return sys::ErrnoError("isolation.netlink", what, got);
    }
    const std::string_view answers(part, static_cast<size_t>(got));
    int acknowledged = 0;
    if (const long error = ErrorIn(answers, acknowledged); error < 0) {
      return sys::ErrnoError("isolation.netlink", what, error);
    }
    list += answers;
  }
}

Status NetlinkRequest::Send(int socket, const char* what) {
  TRY(SendBytes(socket, what));
  int acknowledged = 0;
  for (;;) {
    alignas(nlmsghdr) char answers[4096];
    const long got =
        Syscall(SYS_recvfrom, socket, Arg(answers), sizeof(answers), MSG_DONTWAIT, 0, 0);
    if (got < 0 && acknowledged > 0) {
      return {};
    }
    if (got < 0) {
      return sys::ErrnoError("isolation.netlink", what, got);
    }
    const long error = ErrorIn({answers, static_cast<size_t>(got)}, acknowledged);
    if (error < 0) {
      return sys::ErrnoError("isolation.netlink", what, error);
    }
  }
}

}  // namespace coffer::isolation
