// SPDX-License-Identifier: Apache-2.0
#include "daemon/egress_call.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "base/exit_codes.h"
#include "base/passed_fds.h"
#include "base/sys.h"
#include "call/run/egress_messages.h"
#include "daemon/egress_role.h"
#include "daemon/role.h"
#include "egress/proxy.h"
#include "policy/egress_grants.h"

namespace coffer::daemon {
namespace {

using call::EgressLogHead;
using policy::IpAddress;
using raw::Arg;
using raw::Syscall;

// Appends to the memory file that the supervisor reads. What does not fit is summed up at its beginning.
class LogWriter {
 public:
  void Add(const egress::Traffic& traffic) {
    const std::string line = call::EncodeEntry(traffic);
    if (end_ + line.size() <= call::kMostLogBytes && Put(line, end_)) {
      end_ += line.size();
      return;
    }
    ++head_.omitted;
    head_.bytes_out += traffic.bytes_out;
    head_.bytes_in += traffic.bytes_in;
    (void)Put({reinterpret_cast<const char*>(&head_), sizeof(head_)}, 0);
  }

 private:
  static bool Put(std::string_view data, size_t at) {
    const long put = Syscall(SYS_pwrite64, call::kEgressLog, Arg(data.data()), data.size(), at);
    return put == static_cast<long>(data.size());
  }

  EgressLogHead head_;
  size_t end_ = sizeof(EgressLogHead);
};

// The addresses of this host's interfaces: a name must not lead back to it, whatever network they belong to.
Result<std::vector<IpAddress>> OwnAddresses() {
  std::vector<IpAddress> own;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    return HostFault("egress.addresses", "the addresses of this host cannot be read",
                     "a call with --allow must not reach them, so it does not start");
  }
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) {
      continue;
    }
    if (one->ifa_addr->sa_family == AF_INET) {
      std::array<uint8_t, 4> bytes;
      memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, 4);
      own.push_back(IpAddress::V4(bytes));
    } else if (one->ifa_addr->sa_family == AF_INET6) {
      std::array<uint8_t, 16> bytes;
      memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr, 16);
      own.push_back(IpAddress::V6(bytes));
    }
  }
  ::freeifaddrs(list);
  return own;
}

// Sockets for both sides of every connection and a few more; a log of bounded size; no memory image anywhere.
Status BoundResources() {
  const rlimit files{256, 256};
  const rlimit size{call::kMostLogBytes, call::kMostLogBytes};
  const rlimit none{0, 0};
  if (::setrlimit(RLIMIT_NOFILE, &files) != 0 || ::setrlimit(RLIMIT_FSIZE, &size) != 0 ||
      ::setrlimit(RLIMIT_CORE, &none) != 0) {
    return Internal("egress.limits", "cannot bound the egress process");
  }
  ::signal(SIGXFSZ, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
  return {};
}

// The listeners, or nothing if the supervisor has closed its end.
std::optional<egress::Listeners> ReceiveListeners() {
  char word = 0;
  alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {};
  iovec part{&word, 1};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  const long got =
      Syscall(SYS_recvmsg, call::kEgressControl, Arg(&header), MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got <= 0) {
    return std::nullopt;
  }
  std::vector<UniqueFd> fds = TakePassedFds(header);
  if (got != 1 || word != 'L' || (fds.size() != 1 && fds.size() != 3)) {
    return std::nullopt;
  }
  egress::Listeners listeners;
  listeners.proxy = std::move(fds[0]);
  if (fds.size() == 3) {
    listeners.resolver = std::move(fds[1]);
    listeners.redirect = std::move(fds[2]);
  }
  return listeners;
}

Status Say(std::string_view message) {
  const long sent = Syscall(SYS_sendto, call::kEgressControl, Arg(message.data()), message.size(),
                            MSG_NOSIGNAL, 0, 0);
  return sent < 0 ? Status(sys::ErrnoError("egress.control", "the supervisor is gone", sent))
                  : Status();
}

Status Serve() {
  TRY_ASSIGN(const std::string text, sys::ReadFd(call::kEgressGrants, call::kMostGrantBytes));
  ::close(call::kEgressGrants);
  TRY_ASSIGN(const policy::EgressTexts given, call::DecodeGrants(text));
  TRY_ASSIGN(const policy::ParsedGrants grants, policy::ParseGrants(given));
  const std::unique_ptr<net::Loop> loop = net::MakeLoop();
  LogWriter log;
  TRY_ASSIGN(std::vector<IpAddress> own, OwnAddresses());
  TRY_ASSIGN(const std::unique_ptr<egress::Proxy> proxy,
             egress::MakeProxy(*loop, grants, given.upstream_ca,
                               egress::AddressGuard(grants.addresses, std::move(own)),
                               [&](const egress::Traffic& traffic) { log.Add(traffic); }));
  addrinfo* found = nullptr;  // loads what resolving needs
  if (::getaddrinfo("localhost", nullptr, nullptr, &found) == 0) {
    ::freeaddrinfo(found);
  }
  TRY(BoundResources());
  TRY(EnforceNoFiles());
  TRY(EnterRole(RoleKind::kCallEgress));
  TRY(Say("R" + proxy->ca_certificate()));

  std::shared_ptr<void> watch;
  watch = loop->WatchReadable(call::kEgressControl, [&] {
    if (std::optional<egress::Listeners> listeners = ReceiveListeners()) {
      proxy->Serve(*std::move(listeners));
      return;
    }
    watch.reset();
    proxy->Finish([&] { loop->Stop(); });
  });
  loop->Run();
  ::_exit(0);  // a thread may still wait for a resolver
}

}  // namespace

int RunEgressCall() {
  (void)Syscall(SYS_prctl, PR_SET_NAME, Arg("coffer-egress"), 0, 0, 0);
  for (int fd = call::kEgressControl; fd <= call::kEgressLog; ++fd) {
    (void)Syscall(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC);
  }
  if (const Status served = Serve(); !served.ok()) {
    const Error& error = served.error();
    (void)Say("E" + error.message + "\n" + error.hint);
    return kExitFailed;
  }
  return 0;
}

}  // namespace coffer::daemon
