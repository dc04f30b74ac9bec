// SPDX-License-Identifier: Apache-2.0
#include "call/warden/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "call/warden/wire.h"

namespace coffer::call {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr size_t kMaxDescriptors = 8;
constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

Error Malformed(const char* what) {
  return Internal("internal.wire", std::string("a malformed message from another role: ") + what);
}

bool ValidId(const WardenMessage& message) {
  const size_t length = strnlen(message.call_id, sizeof(message.call_id));
  return length > 0 && length < sizeof(message.call_id);
}

// What came with a message, owned from the first moment.
std::vector<UniqueFd> TakeDescriptors(msghdr& header) {
  std::vector<UniqueFd> taken;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(fd));
      taken.emplace_back(fd);
    }
  }
  return taken;
}

}  // namespace

Status SendMessage(int socket, const WardenMessage& message, std::span<const int> descriptors) {
  if (descriptors.size() > kMaxDescriptors) {
    return Internal("internal.wire", "too many descriptors for one message");
  }
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))] = {};
  iovec part{const_cast<WardenMessage*>(&message), sizeof(message)};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  }
  long sent = 0;
  do {
    sent = Syscall(SYS_sendmsg, socket, Arg(&header), MSG_NOSIGNAL);
  } while (sent == -EINTR);
  if (sent != static_cast<long>(sizeof(message))) {
    return sys::ErrnoError("internal.wire", "cannot reach another role", sent < 0 ? sent : -EIO);
  }
  return {};
}

Result<ReceivedMessage> ReceiveMessage(int socket) {
  ReceivedMessage received;
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))] = {};
  iovec part{&received.message, sizeof(received.message)};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  long got = 0;
  do {
    got = Syscall(SYS_recvmsg, socket, Arg(&header), MSG_CMSG_CLOEXEC);
  } while (got == -EINTR);
  if (got < 0) {
    return sys::ErrnoError("internal.wire", "cannot hear another role", got);
  }
  received.descriptors = TakeDescriptors(header);
  if (got == 0) {
    received.ended = true;
    return received;
  }
  const WardenMessage expected;
  const WardenMessage& message = received.message;
  if (got != static_cast<long>(sizeof(message)) ||
      (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    return Malformed("its size");
  }
  if (message.magic != expected.magic || message.version != expected.version ||
      message.reserved != 0 || !ValidId(message)) {
    return Malformed("its header");
  }
  const bool launch = message.verb == static_cast<uint32_t>(WardenVerb::kLaunch);
  const bool kill = message.verb == static_cast<uint32_t>(WardenVerb::kKill);
  const bool volume = IsVolumeVerb(message.verb);
  if (!launch && !kill && !volume) {
    return Malformed("its verb");
  }
  if (received.descriptors.size() != (launch   ? kLaunchDescriptors
                                      : volume ? kVolumeDescriptors
                                               : 0)) {
    return Malformed("its descriptors");
  }
  return received;
}

Result<UniqueFd> SealedBytes(std::string_view bytes) {
  const long made =
      Syscall(SYS_memfd_create, Arg("coffer-request"), MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (made < 0) {
    return sys::ErrnoError("internal.memfd", "cannot make a memory file", made);
  }
  UniqueFd fd(static_cast<int>(made));
  TRY(sys::WriteAll(fd.get(), bytes));
  const long sealed = Syscall(SYS_fcntl, fd.get(), F_ADD_SEALS, kSeals);
  if (sealed < 0) {
    return sys::ErrnoError("internal.memfd", "cannot seal a memory file", sealed);
  }
  if (const long back = Syscall(SYS_lseek, fd.get(), 0, SEEK_SET); back < 0) {
    return sys::ErrnoError("internal.memfd", "cannot rewind a memory file", back);
  }
  return fd;
}

Result<std::string> ReadSealed(int fd, uint64_t size) {
  const long seals = Syscall(SYS_fcntl, fd, F_GET_SEALS, 0);
  struct stat info{};
  if (seals < 0 || (seals & kSeals) != kSeals || ::fstat(fd, &info) != 0 ||
      static_cast<uint64_t>(info.st_size) != size || size > kMaxWireBytes) {
    return Malformed("its request");
  }
  std::string bytes(size, '\0');
  size_t at = 0;
  while (at < bytes.size()) {
    const long got = Syscall(SYS_pread64, fd, Arg(bytes.data() + at),
                             static_cast<long>(bytes.size() - at), static_cast<long>(at));
    if (got <= 0) {
      return Malformed("its request");
    }
    at += static_cast<size_t>(got);
  }
  return bytes;
}

}  // namespace coffer::call
