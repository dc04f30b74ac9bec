// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/listen.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/sys.h"

namespace coffer::gateway {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr int kBacklog = 4096;  // the kernel takes less if net.core.somaxconn is less

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

Result<UniqueFd> MakeSocket(int family, int type) {
  const long fd = Syscall(SYS_socket, family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) {
    return sys::ErrnoError("gateway.listen.socket", "cannot make a socket", fd);
  }
  return UniqueFd(static_cast<int>(fd));
}

Result<Address> ParseAddress(const std::string& text, uint16_t port) {
  Address address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (::inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    address.size = sizeof(sockaddr_in);
    return address;
  }
  if (::inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    address.size = sizeof(sockaddr_in6);
    return address;
  }
  return Refused("gateway.listen.address", "\"" + text + "\" is not an address to listen on",
                 "write an address such as 127.0.0.1 or ::1, not a name");
}

Result<Address> UnixAddress(const std::string& path) {
  Address address;
  auto* un = reinterpret_cast<sockaddr_un*>(&address.storage);
  if (path.empty() || path.size() >= sizeof(un->sun_path) || path.find('\0') != std::string::npos) {
    return Refused("gateway.listen.path",
                   "the path of the socket is empty or longer than 107 bytes: " + path,
                   "use a shorter state directory");
  }
  un->sun_family = AF_UNIX;
  std::memcpy(un->sun_path, path.data(), path.size());
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  return address;
}

Status BindAndListen(int fd, const Address& address, const std::string& name, unsigned mode) {
  const long bound = Syscall(SYS_bind, fd, Arg(address.get()), address.size);
  if (bound < 0) {
    Error error = sys::ErrnoError("gateway.listen.bind", "cannot listen on " + name, bound);
    error.hint = "is another daemon running there? choose another place with --listen";
    return error;
  }
  if (address.storage.ss_family == AF_UNIX) {
    const long changed = Syscall(SYS_fchmodat, AT_FDCWD, Arg(name.c_str()), mode);
    if (changed < 0) {
      return sys::ErrnoError("gateway.listen.mode", "cannot set the mode of " + name, changed);
    }
  }
  const long listening = Syscall(SYS_listen, fd, kBacklog);
  if (listening < 0) {
    return sys::ErrnoError("gateway.listen.listen", "cannot listen on " + name, listening);
  }
  return {};
}

// The text of an IP address; an IPv4 client of an IPv6 socket is shown as what it is.
std::string AddressText(const sockaddr_storage& storage) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (storage.ss_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(storage).sin_addr, text.data(),
                text.size());
  } else {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
      ::inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text.data(), text.size());
    } else {
      ::inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
    }
  }
  return text.data();
}

}  // namespace

Result<UniqueFd> ListenTcp(const std::string& address, uint16_t port) {
  TRY_ASSIGN(const Address parsed, ParseAddress(address, port));
  TRY_ASSIGN(UniqueFd fd, MakeSocket(parsed.storage.ss_family, SOCK_STREAM));
  const int on = 1;
  // A restart must not wait for connections of the last run; a port that is in use is refused all the same.
  Syscall(SYS_setsockopt, fd.get(), SOL_SOCKET, SO_REUSEADDR, Arg(&on), sizeof(on));
  TRY(BindAndListen(fd.get(), parsed, address + ":" + std::to_string(port), 0));
  return fd;
}

Result<UniqueFd> ListenUnix(const std::string& path, unsigned mode) {
  TRY_ASSIGN(const Address address, UnixAddress(path));
  {
    TRY_ASSIGN(const UniqueFd probe, MakeSocket(AF_UNIX, SOCK_STREAM));
    const long answer = Syscall(SYS_connect, probe.get(), Arg(address.get()), address.size);
    if (answer >= 0 || answer == -EAGAIN) {
      return Refused("gateway.listen.taken", "a process listens on " + path + " already",
                     "is another daemon running with this state directory?");
    }
    if (answer == -ECONNREFUSED) {
      struct stat info{};
      if (Syscall(SYS_newfstatat, AT_FDCWD, Arg(path.c_str()), Arg(&info), AT_SYMLINK_NOFOLLOW) <
              0 ||
          !S_ISSOCK(info.st_mode)) {
        return Refused("gateway.listen.path", path + " is there and is not a socket");
      }
      RemoveSocketFile(path);
    }
  }
  TRY_ASSIGN(UniqueFd fd, MakeSocket(AF_UNIX, SOCK_STREAM));
  TRY(BindAndListen(fd.get(), address, path, mode));
  return fd;
}

Result<uint16_t> PortOf(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  const long got = Syscall(SYS_getsockname, fd, Arg(&storage), Arg(&size));
  if (got < 0) {
    return sys::ErrnoError("gateway.listen.name", "cannot read the address of a socket", got);
  }
  return storage.ss_family == AF_INET6 ? ntohs(reinterpret_cast<sockaddr_in6&>(storage).sin6_port)
                                       : ntohs(reinterpret_cast<sockaddr_in&>(storage).sin_port);
}

Result<int> FamilyOf(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  const long got = Syscall(SYS_getsockname, fd, Arg(&storage), Arg(&size));
  if (got < 0) {
    return sys::ErrnoError("gateway.listen.name", "cannot read the address of a socket", got);
  }
  return static_cast<int>(storage.ss_family);
}

Result<Channel> DescribeChannel(int fd) {
  sockaddr_storage local{};
  socklen_t size = sizeof(local);
  long got = Syscall(SYS_getsockname, fd, Arg(&local), Arg(&size));
  if (got < 0) {
    return sys::ErrnoError("gateway.accept.name", "cannot read the address of a connection", got);
  }
  Channel channel;
  if (local.ss_family == AF_UNIX) {
    ucred peer{};
    size = sizeof(peer);
    got = Syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, Arg(&peer), Arg(&size));
    // A uid that is not mapped into our namespace reads as -1 or as the overflow uid: an unknown user.
    if (got < 0 || peer.uid == static_cast<uid_t>(-1)) {
      return sys::ErrnoError("gateway.accept.peer", "cannot read the peer of a unix socket",
                             got < 0 ? got : -ESRCH);
    }
    channel.unix_socket = true;
    channel.address = "unix";
    channel.peer = Credential::Peer{peer.uid, peer.gid, peer.pid};
    return channel;
  }
  sockaddr_storage remote{};
  size = sizeof(remote);
  got = Syscall(SYS_getpeername, fd, Arg(&remote), Arg(&size));
  if (got < 0) {
    return sys::ErrnoError("gateway.accept.peer", "the peer of a connection is gone", got);
  }
  channel.local_address = AddressText(local);
  channel.address = AddressText(remote);
  return channel;
}

std::string PeerKey(const Channel& channel) {
  if (channel.peer.has_value()) {
    return "uid " + std::to_string(channel.peer->uid);
  }
  in6_addr address{};
  if (::inet_pton(AF_INET6, channel.address.c_str(), &address) != 1) {
    return channel.address;
  }
  std::memset(&address.s6_addr[8], 0, 8);  // a client with one address of a /64 has all of them
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET6, &address, text.data(), text.size());
  return text.data();
}

void TuneTcp(int fd) {
  const int on = 1;
  Syscall(SYS_setsockopt, fd, IPPROTO_TCP, TCP_NODELAY, Arg(&on), sizeof(on));
  Syscall(SYS_setsockopt, fd, SOL_SOCKET, SO_KEEPALIVE, Arg(&on), sizeof(on));
}

void SendAtOnce(int fd, std::string_view text) {
  Syscall(SYS_sendto, fd, Arg(text.data()), static_cast<long>(text.size()),
          MSG_DONTWAIT | MSG_NOSIGNAL);
}

void RemoveSocketFile(const std::string& path) {
  Syscall(SYS_unlinkat, AT_FDCWD, Arg(path.c_str()), 0);
}

}  // namespace coffer::gateway
