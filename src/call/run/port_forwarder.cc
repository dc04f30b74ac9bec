// SPDX-License-Identifier: Apache-2.0
#include "call/run/port_forwarder.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <list>
#include <memory>

#include "base/passed_fds.h"
#include "base/sys.h"

namespace coffer::call {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr size_t kMostListeners = 64;

struct Listener {
  UniqueFd fd;
  UniqueFd life;  // hangs up when the call is over
  uint16_t port = 0;
  bool over = false;
};

// One direction: bytes read and not yet written. The next read waits until all of them are written.
struct Flow {
  std::array<char, 16384> bytes;
  size_t size = 0;
  size_t sent = 0;
  bool ended = false;   // nothing more comes
  bool passed = false;  // and the other side knows

  bool Full() const { return sent < size; }
  bool WantsToRead() const { return !ended && !Full(); }

  // False: the connection is broken.
  bool Read(int from) {
    const long got = Syscall(SYS_recvfrom, from, Arg(bytes.data()), static_cast<long>(bytes.size()),
                             MSG_DONTWAIT, 0, 0);
    if (got < 0) {
      return got == -EAGAIN || got == -EINTR;
    }
    ended = got == 0;
    size = static_cast<size_t>(got);
    sent = 0;
    return true;
  }
  bool Write(int to) {
    if (Full()) {
      const long put = Syscall(SYS_sendto, to, Arg(bytes.data() + sent),
                               static_cast<long>(size - sent), MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0);
      if (put < 0) {
        return put == -EAGAIN || put == -EINTR;
      }
      sent += static_cast<size_t>(put);
    }
    if (ended && !Full() && !passed) {
      passed = true;
      (void)::shutdown(to, SHUT_WR);
    }
    return true;
  }
};

struct Connection {
  const Listener* from = nullptr;
  UniqueFd client;  // in the call's network
  UniqueFd server;  // in the process's network, borrowed from the pool
  bool connected = false;
  bool over = false;
  Flow to_server, to_client;
};

// A connection that is over leaves a socket that can connect anew (connect(2), AF_UNSPEC). None can be made here.
bool Recycle(int fd) {
  sockaddr none{};
  none.sa_family = AF_UNSPEC;
  return ::connect(fd, &none, sizeof(none)) == 0;
}

class Forwarder {
 public:
  Forwarder(UniqueFd channel, std::vector<UniqueFd> sockets, std::vector<uint16_t> ports)
      : channel_(std::move(channel)), pool_(std::move(sockets)), ports_(std::move(ports)) {}

  // False when nothing can come any more.
  bool Turn() {
    std::vector<pollfd> waits;
    waits.push_back({listeners_.size() < kMostListeners ? channel_.get() : -1, POLLIN, 0});
    for (const Listener& listener : listeners_) {
      waits.push_back({listener.life.get(), 0, 0});
      waits.push_back({pool_.empty() ? -1 : listener.fd.get(), POLLIN, 0});
    }
    for (const auto& connection : connections_) {
      AddWaits(*connection, waits);
    }
    const long ready =
        Syscall(SYS_ppoll, Arg(waits.data()), static_cast<long>(waits.size()), 0, 0, 0);
    if (ready < 0) {
      return ready == -EINTR;
    }
    size_t at = 1;
    for (Listener& listener : listeners_) {
      listener.over = waits[at].revents != 0;
      if (!listener.over && waits[at + 1].revents != 0) {
        Accept(listener);
      }
      at += 2;
    }
    // Accept has added connections behind those that were waited for.
    for (auto one = connections_.begin(); one != connections_.end() && at < waits.size(); ++one) {
      Serve(**one, waits[at].revents, waits[at + 1].revents);
      at += 2;
    }
    const bool open = waits[0].revents == 0 || TakeOffer();
    Tidy();
    return open || !listeners_.empty();
  }

 private:
  // Whether a side has said all and was not told the end yet: then a hangup means that it will take nothing more, and a
  // connection that is kept for it would hold its place until the other side does something.
  static bool OnlyTakes(const Flow& from, const Flow& towards) {
    return from.passed && !towards.passed;
  }
  // A descriptor without interest is left out, or a hangup on it would be reported again and again.
  static void AddWaits(const Connection& connection, std::vector<pollfd>& waits) {
    const Flow& in = connection.to_server;
    const Flow& out = connection.to_client;
    const auto add = [&](int fd, bool reads, bool writes, bool hangup) {
      const auto events = static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
      waits.push_back({events == 0 && !hangup ? -1 : fd, events, 0});
    };
    const bool ready = connection.connected;
    add(connection.client.get(), ready && in.WantsToRead(), out.Full(), OnlyTakes(in, out));
    add(connection.server.get(), ready && out.WantsToRead(), !ready || in.Full(),
        OnlyTakes(out, in));
  }

  void Accept(const Listener& listener) {
    if (pool_.empty()) {
      return;
    }
    UniqueFd client(::accept4(listener.fd.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!client) {
      return;
    }
    auto made = std::make_unique<Connection>();
    made->from = &listener;
    made->client = std::move(client);
    made->server = std::move(pool_.back());
    pool_.pop_back();
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(listener.port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const long connected = Syscall(SYS_connect, made->server.get(), Arg(&address), sizeof(address));
    made->connected = connected == 0;
    made->over = connected < 0 && connected != -EINPROGRESS;
    connections_.push_back(std::move(made));
  }

  static void Serve(Connection& connection, short client, short server) {
    if (!connection.connected) {
      if (server == 0) {
        return;
      }
      int failed = 0;
      socklen_t size = sizeof(failed);
      connection.connected =
          ::getsockopt(connection.server.get(), SOL_SOCKET, SO_ERROR, &failed, &size) == 0 &&
          failed == 0;
      connection.over = !connection.connected;
      return;
    }
    const int inside = connection.server.get();
    const int outside = connection.client.get();
    Flow& in = connection.to_server;
    Flow& out = connection.to_client;
    const bool good = (client == 0 || !in.WantsToRead() || in.Read(outside)) &&
                      (server == 0 || !out.WantsToRead() || out.Read(inside)) && in.Write(inside) &&
                      out.Write(outside);
    constexpr short kGone = POLLHUP | POLLERR;
    const bool gone = ((client & kGone) != 0 && OnlyTakes(in, out)) ||
                      ((server & kGone) != 0 && OnlyTakes(out, in));
    connection.over = !good || gone || (in.passed && out.passed);
  }

  // False: the other end is gone.
  bool TakeOffer() {
    PortOffer offer;
    MessageWithFds given =
        ReceiveWithFds(channel_.get(), std::as_writable_bytes(std::span(&offer, 1)), MSG_DONTWAIT);
    if (given.got < 0) {
      return given.got == -EAGAIN || given.got == -EINTR;
    }
    const bool good = given.got == static_cast<long>(sizeof(offer)) &&
                      offer.magic == PortOffer().magic && given.fds.size() == 2 && !given.cut &&
                      std::find(ports_.begin(), ports_.end(), offer.port) != ports_.end();
    if (good) {
      listeners_.push_back({std::move(given.fds[0]), std::move(given.fds[1]), offer.port, false});
    }
    return given.got > 0;
  }

  void Tidy() {
    for (auto& connection : connections_) {
      if (connection->over || connection->from->over) {
        if (Recycle(connection->server.get())) {
          pool_.push_back(std::move(connection->server));
        }
        connection.reset();
      }
    }
    std::erase(connections_, nullptr);
    listeners_.remove_if([](const Listener& listener) { return listener.over; });
  }

  UniqueFd channel_;
  std::vector<UniqueFd> pool_;
  const std::vector<uint16_t> ports_;
  std::list<Listener> listeners_;
  std::vector<std::unique_ptr<Connection>> connections_;
};

}  // namespace

void RunForwarder(UniqueFd channel, std::vector<UniqueFd> sockets, std::vector<uint16_t> ports) {
  Forwarder forwarder(std::move(channel), std::move(sockets), std::move(ports));
  while (forwarder.Turn()) {
  }
  ::_exit(0);
}

}  // namespace coffer::call
