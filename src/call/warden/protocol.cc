// SPDX-License-Identifier: Apache-2.0
#include "call/warden/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <optional>

#include "base/passed_fds.h"
#include "base/sys.h"
#include "call/warden/wire.h"

namespace coffer::call {
namespace {

using raw::Arg;
using raw::Syscall;

static_assert(kMostPassedFds >= kLaunchDescriptors + kMostPortChannels + 1);
constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

Error Malformed(const char* what) {
  return Internal("internal.wire", std::string("a malformed message from another role: ") + what);
}

// Every verb but a table is about a call.
bool ValidId(const WardenMessage& message) {
  const size_t length = strnlen(message.call_id, sizeof(message.call_id));
  const bool table = message.verb == static_cast<uint32_t>(WardenVerb::kTable);
  const size_t parent = strnlen(message.parent_id, sizeof(message.parent_id));
  const bool launch = message.verb == static_cast<uint32_t>(WardenVerb::kLaunch);
  return (length > 0) != table && length < sizeof(message.call_id) &&
         parent < (launch ? sizeof(message.parent_id) : 1);
}

// How many descriptors come with a verb of that peer; nothing if it is not the peer's.
std::optional<size_t> DescriptorsOf(uint32_t verb, WardenPeer peer) {
  if (peer == WardenPeer::kMonitor) {
    return verb == static_cast<uint32_t>(WardenVerb::kTable) ? std::optional<size_t>(1)
                                                             : std::nullopt;
  }
  switch (verb) {
    case static_cast<uint32_t>(WardenVerb::kLaunch):
      return kLaunchDescriptors;
    case static_cast<uint32_t>(WardenVerb::kKill):
    case static_cast<uint32_t>(WardenVerb::kSignal):
      return 0;
    case static_cast<uint32_t>(WardenVerb::kOpenVolume):
    case static_cast<uint32_t>(WardenVerb::kCloseVolume):
      return kVolumeDescriptors;
    default:
      return std::nullopt;
  }
}

bool IsSealed(int fd) {
  const long seals = Syscall(SYS_fcntl, fd, F_GET_SEALS, 0);
  return seals >= 0 && (seals & kSeals) == kSeals;
}

mode_t KindOf(int fd) {
  struct stat info{};
  return ::fstat(fd, &info) == 0 ? info.st_mode & S_IFMT : 0;
}

int SocketOption(int fd, int option) {
  int value = -1;
  socklen_t size = sizeof(value);
  return ::getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

bool IsUnixSocket(int fd, int type) {
  return SocketOption(fd, SO_DOMAIN) == AF_UNIX && SocketOption(fd, SO_TYPE) == type;
}

Status Send(int socket, const WardenMessage& message, std::span<const int> descriptors, int flags) {
  if (descriptors.size() > kMostPassedFds) {
    return Internal("internal.wire", "too many descriptors for one message");
  }
  long sent = 0;
  do {
    sent = SendWithFds(socket, std::as_bytes(std::span(&message, 1)), descriptors, flags);
  } while (sent == -EINTR);
  if (sent != static_cast<long>(sizeof(message))) {
    return sys::ErrnoError("internal.wire", "cannot reach another role", sent < 0 ? sent : -EIO);
  }
  return {};
}

}  // namespace

Status SendMessage(int socket, const WardenMessage& message, std::span<const int> descriptors) {
  return Send(socket, message, descriptors, 0);
}

Result<SocketPair> MakeSocketPair(int type) {
  int ends[2] = {-1, -1};
  const long made = Syscall(SYS_socketpair, AF_UNIX, type | SOCK_CLOEXEC, 0, Arg(ends));
  if (made < 0) {
    return sys::ErrnoError("internal.socketpair", "cannot make a socket between the roles", made);
  }
  return SocketPair{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

bool HasToolsChannel(const std::vector<UniqueFd>& descriptors) {
  return descriptors.size() > kLaunchDescriptors &&
         IsUnixSocket(descriptors.back().get(), SOCK_STREAM);
}

bool AreLaunchDescriptors(const std::vector<UniqueFd>& descriptors) {
  const auto is_stream = [](int fd) { return S_ISFIFO(KindOf(fd)) || S_ISSOCK(KindOf(fd)); };
  const size_t channels = descriptors.size() - (HasToolsChannel(descriptors) ? 1 : 0);
  for (size_t i = kLaunchDescriptors; i < channels; ++i) {
    if (!IsUnixSocket(descriptors[i].get(), SOCK_SEQPACKET)) {
      return false;
    }
  }
  return descriptors.size() >= kLaunchDescriptors && IsSealed(descriptors[1].get()) &&
         is_stream(descriptors[2].get()) && is_stream(descriptors[3].get()) &&
         IsUnixSocket(descriptors[4].get(), SOCK_STREAM) &&
         channels <= kLaunchDescriptors + kMostPortChannels;
}

bool AreVolumeDescriptors(const std::vector<UniqueFd>& descriptors) {
  return descriptors.size() == kVolumeDescriptors &&
         IsUnixSocket(descriptors[0].get(), SOCK_STREAM);
}

Status SendTable(int socket, int table, uint64_t size) {
  WardenMessage message;
  message.verb = static_cast<uint32_t>(WardenVerb::kTable);
  message.size = size;
  return Send(socket, message, std::span(&table, 1), MSG_DONTWAIT);
}

Result<ReceivedMessage> ReceiveMessage(int socket, WardenPeer peer) {
  ReceivedMessage received;
  MessageWithFds came;
  do {
    came = ReceiveWithFds(socket, std::as_writable_bytes(std::span(&received.message, 1)),
                          MSG_DONTWAIT);
  } while (came.got == -EINTR);
  if (came.got == -EAGAIN) {
    received.empty = true;
    return received;
  }
  if (came.got < 0) {
    return sys::ErrnoError("internal.wire", "cannot hear another role", came.got);
  }
  received.descriptors = std::move(came.fds);
  if (came.got == 0) {
    received.ended = true;
    return received;
  }
  const WardenMessage expected;
  const WardenMessage& message = received.message;
  if (came.got != static_cast<long>(sizeof(message)) || came.cut) {
    return Malformed("its size");
  }
  if (message.magic != expected.magic || message.version != expected.version ||
      message.reserved != 0 || !ValidId(message)) {
    return Malformed("its header");
  }
  const std::optional<size_t> descriptors = DescriptorsOf(message.verb, peer);
  if (!descriptors) {
    return Malformed("its verb");
  }
  const size_t more =
      message.verb == static_cast<uint32_t>(WardenVerb::kLaunch) ? kMostPortChannels + 1 : 0;
  if (received.descriptors.size() < *descriptors ||
      received.descriptors.size() > *descriptors + more) {
    return Malformed("its descriptors");
  }
  return received;
}

Result<UniqueFd> MakeMemoryFile() {
  const long made =
      Syscall(SYS_memfd_create, Arg("coffer-request"), MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (made < 0) {
    return sys::ErrnoError("internal.memfd", "cannot make a memory file", made);
  }
  return UniqueFd(static_cast<int>(made));
}

Status Seal(int fd) {
  if (const long sealed = Syscall(SYS_fcntl, fd, F_ADD_SEALS, kSeals); sealed < 0) {
    return sys::ErrnoError("internal.memfd", "cannot seal a memory file", sealed);
  }
  if (const long back = Syscall(SYS_lseek, fd, 0, SEEK_SET); back < 0) {
    return sys::ErrnoError("internal.memfd", "cannot rewind a memory file", back);
  }
  return {};
}

Result<UniqueFd> SealedBytes(std::string_view bytes) {
  TRY_ASSIGN(UniqueFd fd, MakeMemoryFile());
  TRY(sys::WriteAll(fd.get(), bytes));
  TRY(Seal(fd.get()));
  return fd;
}

Result<std::string> ReadSealed(int fd, uint64_t size) {
  struct stat info{};
  if (!IsSealed(fd) || ::fstat(fd, &info) != 0 || static_cast<uint64_t>(info.st_size) != size ||
      size > kMaxWireBytes) {
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
