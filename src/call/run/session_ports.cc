// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/exit_codes.h"
#include "base/passed_fds.h"
#include "base/sys.h"
#include "call/run/egress_listeners.h"
#include "call/run/port_forwarder.h"
#include "isolation/child/report.h"
#include "isolation/seccomp/compile.h"
#include "isolation/seccomp/install.h"

namespace coffer::call {
namespace {

using raw::Arg;
using raw::Syscall;

// The kernel doubles it, for its own needs. Left to itself it gives each direction up to 6 MiB.
constexpr int kSocketBuffer = 262144;
// How often a SYN is sent again: after 1, 2 and 4 s the place of a connection that is not accepted is free for another.
constexpr int kConnectTries = 2;

static_assert(kMostForwards + kMostConnections <= isolation::kMostPortSockets);

Error PortError(const char* what, long answer) {
  return sys::ErrnoError("isolation.ports", what, answer);
}

// The uid of the boundary it serves, no capability, no way to get one, little time and few descriptors.
bool LeavePower(uint32_t uid, pid_t parent, Nanos cpu) {
  if (::geteuid() == 0 &&
      (Syscall(SYS_setgroups, 0, 0) < 0 || Syscall(SYS_setresgid, uid, uid, uid) < 0 ||
       Syscall(SYS_setresuid, uid, uid, uid) < 0)) {
    return false;
  }
  // The change of identity clears it.
  if (Syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || ::getppid() != parent) {
    return false;
  }
  const auto seconds =
      static_cast<rlim_t>(std::chrono::duration_cast<std::chrono::seconds>(cpu).count() + 1);
  // No more CPU time than the call itself may have.
  const rlimit time{seconds, seconds};
  const rlimit files{256, 256};
  return Syscall(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0) >= 0 &&
         Syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) >= 0 &&
         ::setrlimit(RLIMIT_CPU, &time) == 0 && ::setrlimit(RLIMIT_NOFILE, &files) == 0;
}

// Only `fds` stay open, as 0, 1, 2, ... in their order: the pipes of the call must end when its supervisor does.
bool KeepOnly(std::vector<int> fds) {
  for (int& fd : fds) {
    const long high = Syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 128);
    if (high < 0) {
      return false;
    }
    fd = static_cast<int>(high);
  }
  int place = 0;
  for (const int fd : fds) {
    if (Syscall(SYS_dup3, fd, place++, O_CLOEXEC) < 0) {
      return false;
    }
  }
  return Syscall(SYS_close_range, place, ~0U, 0) >= 0;
}

Result<pid_t> StartForwarder(const RunRequest& request, uint32_t uid, int channel,
                             const std::vector<UniqueFd>& sockets) {
  TRY_ASSIGN(const std::vector<sock_filter> filter, ForwarderFilter(sockets.size()));
  std::vector<uint16_t> ports = request.ports;
  for (const RunRequest::Publish& port : request.publish) {
    ports.push_back(port.inside);
  }
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    return HostFault("isolation.host", "the host cannot start another process",
                     "wait until calls have ended, or raise its limits");
  }
  if (pid > 0) {
    return pid;
  }
  std::vector<int> kept = {channel};
  for (const UniqueFd& socket : sockets) {
    kept.push_back(socket.get());
  }
  if (!KeepOnly(kept) || !LeavePower(uid, parent, request.envelope.limits.cpu) ||
      isolation::InstallFilterUnrecorded(filter) < 0) {
    ::_exit(kExitFailed);
  }
  std::vector<UniqueFd> mine;
  for (size_t i = 1; i < kept.size(); ++i) {
    mine.emplace_back(static_cast<int>(i));
  }
  RunForwarder(UniqueFd(0), std::move(mine), std::move(ports));
}

bool HasForwarder(const RunRequest& request) {
  return !request.ports.empty() || !request.publish.empty();
}

}  // namespace

Result<std::vector<sock_filter>> ForwarderFilter(uint64_t pool) {
  using isolation::Compare;
  using isolation::kAllow;
  using isolation::kLowHalf;
  isolation::Profile profile;
  // The process relays bytes of payloads. It has the system calls for relaying, and none that makes
  // a socket.
  profile.fallback = isolation::FailWith(EPERM);
  for (const char* name :
       {"recvfrom", "recvmsg", "accept4", "shutdown", "poll", "ppoll", "getsockopt", "brk", "mmap",
        "munmap", "mremap", "madvise", "futex", "rt_sigreturn", "restart_syscall", "clock_gettime",
        "exit", "exit_group"}) {
    profile.rules.push_back({name, kAllow, {}});
  }
  profile.rules.push_back(
      // Only the sockets of its pool, which are numbered from 1 and belong to the boundary's
      // network. Nor are they closed: it could not make others.
      {"connect",
       kAllow,
       {{0, Compare::kGreaterEqual, 1, kLowHalf}, {0, Compare::kLessEqual, pool, kLowHalf}}});
  profile.rules.push_back({"close", kAllow, {{0, Compare::kGreater, pool, kLowHalf}}});
  // Without an address, and without MSG_FASTOPEN, which connects.
  profile.rules.push_back(
      {"sendto",
       kAllow,
       {{3, Compare::kEqual, MSG_DONTWAIT | MSG_NOSIGNAL, kLowHalf}, {4, Compare::kEqual, 0}}});
  return isolation::Compile(profile, isolation::NativeSyscalls());
}

Status BoundSocket(int socket) {
  for (const int option : {SO_SNDBUF, SO_RCVBUF}) {
    const long set = Syscall(SYS_setsockopt, socket, SOL_SOCKET, option, Arg(&kSocketBuffer),
                             sizeof(kSocketBuffer));
    if (set < 0) {
      return PortError("cannot bound the buffers of a port", set);
    }
  }
  const long set = Syscall(SYS_setsockopt, socket, IPPROTO_TCP, TCP_SYNCNT, Arg(&kConnectTries),
                           sizeof(kConnectTries));
  return set < 0 ? Status(PortError("cannot bound how long a port connects", set)) : Status();
}

Status SendPortOffer(int channel, uint16_t port, int listener, int life) {
  PortOffer offer;
  offer.port = port;
  const int given[2] = {listener, life};
  const long sent = SendWithFds(channel, std::as_bytes(std::span(&offer, 1)), given, MSG_DONTWAIT);
  return sent < 0 ? Status(PortError("cannot hand a listener to the forwarder", sent)) : Status();
}

uint32_t PortSocketsOf(const RunRequest& request) {
  return static_cast<uint32_t>((HasForwarder(request) ? kMostConnections : 0) +
                               std::min(request.forwards.size(), kMostForwards) +
                               (request.egress.empty() ? 0 : kEgressSockets));
}

SessionPorts::SessionPorts(SessionPorts&& other) noexcept
    : life_(std::move(other.life_)),
      published_(std::move(other.published_)),
      forwarder_(std::exchange(other.forwarder_, -1)) {}

SessionPorts& SessionPorts::operator=(SessionPorts&& other) noexcept {
  std::swap(life_, other.life_);
  std::swap(published_, other.published_);
  std::swap(forwarder_, other.forwarder_);
  return *this;
}

SessionPorts::~SessionPorts() {
  if (forwarder_ > 0) {
    ::kill(forwarder_, SIGKILL);
    ::waitpid(forwarder_, nullptr, 0);
  }
}

Result<SessionPorts> SessionPorts::Open(const RunRequest& request, isolation::Boundary& boundary) {
  SessionPorts ports;
  std::vector<UniqueFd> sockets = boundary.TakePortSockets();
  if (sockets.size() + (request.egress.empty() ? 0 : kEgressSockets) != PortSocketsOf(request)) {
    return Internal("isolation.ports", "the boundary did not make the sockets for its ports");
  }
  for (const UniqueFd& socket : sockets) {
    TRY(BoundSocket(socket.get()));
  }
  if (!request.forwards.empty()) {
    TRY_ASSIGN(sys::Pipe life, sys::MakePipe());
    for (const RunRequest::Forward& forward : request.forwards) {
      const UniqueFd listener = std::move(sockets.back());
      sockets.pop_back();
      TRY(ListenInside(listener.get(), forward.port));
      // A process that has ended takes no offers; the port is then as closed as it is.
      (void)SendPortOffer(request.port_channels[forward.channel], forward.port, listener.get(),
                          life.read_end.get());
    }
    ports.life_ = std::move(life.write_end);
  }
  if (!request.ports.empty()) {
    TRY_ASSIGN(ports.forwarder_,
               StartForwarder(request, boundary.host_uid(), request.port_channels[0], sockets));
  }
  if (!request.publish.empty()) {
    TRY_ASSIGN(ports.published_, PublishedPorts::Open(request.publish));
    TRY_ASSIGN(ports.forwarder_, StartForwarder(request, boundary.host_uid(),
                                                ports.published_.forwarder_channel(), sockets));
  }
  // An offer that no forwarder can take must not keep the listener of a call that is over.
  for (const int channel : request.port_channels) {
    ::close(channel);
  }
  return ports;
}

}  // namespace coffer::call
