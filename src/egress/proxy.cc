// SPDX-License-Identifier: Apache-2.0
#include "egress/proxy.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <list>

#include "base/sys.h"
#include "egress/boundary_ca.h"
#include "egress/ca_stock.h"
#include "egress/proxy_connection.h"
#include "egress/resolver_socket.h"
#include "egress/watched_stock.h"

namespace coffer::egress {
namespace {

using net::error_code;
using raw::Arg;
using raw::Syscall;

constexpr std::chrono::milliseconds kFinishTime{1500};
constexpr std::chrono::milliseconds kRetryTime{100};

// Where a redirected connection went: the kernel keeps it as the local address of the accepted socket.
std::optional<Destination> DestinationOf(int fd) {
  union {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
  } local{};
  socklen_t size = sizeof(local);
  if (Syscall(SYS_getsockname, fd, Arg(&local), Arg(&size)) < 0) {
    return std::nullopt;
  }
  if (local.any.sa_family == AF_INET6) {
    std::array<uint8_t, 16> bytes;
    memcpy(bytes.data(), &local.v6.sin6_addr, bytes.size());
    return Destination{policy::IpAddress::V6(bytes), ntohs(local.v6.sin6_port)};
  }
  if (local.any.sa_family == AF_INET) {
    std::array<uint8_t, 4> bytes;
    memcpy(bytes.data(), &local.v4.sin_addr, bytes.size());
    return Destination{policy::IpAddress::V4(bytes), ntohs(local.v4.sin_port)};
  }
  return std::nullopt;
}

class AsioProxy : public Proxy {
 public:
  AsioProxy(net::Loop& loop, const policy::ParsedGrants& grants, AddressGuard guard,
            std::shared_ptr<ServerTrust> trust, std::unique_ptr<BoundaryCa> ca,
            std::shared_ptr<const WatchedValues> watched, TrafficLog log, AccessNotifier notify,
            const ProxyTimes& times)
      : loop_(loop),
        executor_(net::IoExecutor::InTurns(net::ContextOf(loop))),
        most_(grants.connections == 0
                  ? kMostProxyConnections
                  : std::min<size_t>(grants.connections, kMostProxyConnections)),
        trust_(std::move(trust)),
        ca_(std::move(ca)),
        upstream_(executor_, grants, std::move(guard), trust_.get()),
        resolver_(grants.rules, log),
        meters_(grants.rules),
        access_(executor_, grants.hold_seconds, std::move(notify), times.minute),
        watched_(std::move(watched)),
        context_{times,   executor_, grants,         upstream_,      resolver_, meters_,
                 access_, ca_.get(), watched_.get(), std::move(log), open_,     pipes_} {}

  const std::string& ca_certificate() const override {
    static const std::string kNone;
    return ca_ == nullptr ? kNone : ca_->certificate();
  }

  void Serve(Listeners listeners) override {
    if (listeners.resolver) {
      resolver_socket_.emplace(loop_, resolver_, std::move(listeners.resolver));
    }
    Open(std::move(listeners.proxy), proxy_);
    Open(std::move(listeners.redirect), redirect_);
    if (listeners.redirect6) {
      resolver_.AnswerIpv6();
      Open(std::move(listeners.redirect6), redirect6_);
    }
  }

  void Decide(const AccessDecision& decision) override { access_.Decide(decision); }

  void Finish(std::function<void()> ended) override {
    access_.End();
    resolver_socket_.reset();
    proxy_.socket.reset();
    redirect_.socket.reset();
    redirect6_.socket.reset();
    ended_ = std::move(ended);
    if (connections_.empty()) {
      Ended();
      return;
    }
    for (const std::unique_ptr<ProxyConnection>& connection : connections_) {
      connection->End();
    }
    // One may wait for a resolver, which cannot be interrupted: what is open is written down without it.
    deadline_ = loop_.After(kFinishTime, [this] { Ended(); });
  }

  bool idle() const override {
    return !proxy_.waiting && !redirect_.waiting && !redirect6_.waiting && connections_.empty() &&
           !ended_;
  }

 private:
  using Descriptor = net::asio::posix::basic_stream_descriptor<net::IoExecutor>;
  struct Listener {
    std::optional<Descriptor> socket;
    bool waiting = false;
    std::shared_ptr<void> retry;
  };

  void Open(UniqueFd socket, Listener& listener) {
    if (socket) {
      listener.socket.emplace(executor_, socket.Release());
      Accept(listener);
    }
  }

  void Ended() {
    if (const std::function<void()> ended = std::exchange(ended_, nullptr)) {
      while (!open_.empty()) {
        (*open_.begin())->Close();
      }
      ended();
    }
  }

  // accept4 by hand: the role's filter lets nothing else make a socket out of the listener.
  void Accept(Listener& listener) {
    if (!listener.socket || listener.waiting || connections_.size() >= most_) {
      return;
    }
    listener.waiting = true;
    listener.socket->async_wait(Descriptor::wait_read, [this, &listener](error_code error) {
      listener.waiting = false;
      if (error || !listener.socket) {
        return;
      }
      // All listeners may have waited for the last place.
      const long accepted = connections_.size() >= most_
                                ? -EAGAIN
                                : Syscall(SYS_accept4, listener.socket->native_handle(), 0, 0,
                                          SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (accepted < 0 && accepted != -EAGAIN) {  // no descriptor is free
        listener.retry = loop_.After(kRetryTime, [this, &listener] { Accept(listener); });
        return;
      }
      if (accepted >= 0) {
        Start(UniqueFd(static_cast<int>(accepted)), &listener != &proxy_);
      }
      Accept(listener);
    });
  }

  void Start(UniqueFd fd, bool redirected) {
    const std::optional<Destination> to = redirected ? DestinationOf(fd.get()) : std::nullopt;
    if (redirected && !to) {
      return;
    }
    const int family = to && to->address.is_v6() ? AF_INET6 : AF_INET;
    net::Socket socket(context_.executor);
    error_code error;
    socket.assign(net::asio::generic::stream_protocol(family, IPPROTO_TCP), fd.get(), error);
    if (error) {
      return;
    }
    (void)fd.Release();
    // An answer goes to the program in several writes. Held back, each would wait for the
    // acknowledgement of the one before.
    socket.set_option(net::asio::ip::tcp::no_delay(true), error);
    connections_.push_back(std::make_unique<ProxyConnection>(context_, std::move(socket), to));
    const auto place = std::prev(connections_.end());
    net::asio::co_spawn(context_.executor, (*place)->Run(),
                        [this, place](const std::exception_ptr&) {
                          connections_.erase(place);
                          if (connections_.empty()) {
                            Ended();
                          }
                          Accept(proxy_);
                          Accept(redirect_);
                          Accept(redirect6_);
                        });
  }

  net::Loop& loop_;
  const net::IoExecutor executor_;  // in turns with the proxies of other boundaries
  const size_t most_;
  const std::shared_ptr<ServerTrust> trust_;
  const std::unique_ptr<BoundaryCa> ca_;
  Upstream upstream_;
  Resolver resolver_;
  RuleMeters meters_;
  AccessRequests access_;
  const std::shared_ptr<const WatchedValues> watched_;
  std::set<OpenTraffic*> open_;
  net::PipeAllowance pipes_{kMostPipes};
  const ProxyContext context_;
  std::optional<ResolverSocket> resolver_socket_;
  Listener proxy_;
  Listener redirect_;
  Listener redirect6_;
  std::list<std::unique_ptr<ProxyConnection>> connections_;
  std::function<void()> ended_;
  std::shared_ptr<void> deadline_;
};

}  // namespace

Result<std::unique_ptr<Proxy>> MakeProxy(net::Loop& loop, const policy::ParsedGrants& grants,
                                         UpstreamTrust& trust, const std::string& upstream_ca,
                                         CaStock& authorities, WatchedStock& watched,
                                         AddressGuard guard, TrafficLog log, AccessNotifier notify,
                                         const ProxyTimes& times) {
  std::shared_ptr<ServerTrust> trusted;
  std::unique_ptr<BoundaryCa> ca;
  if (grants.intercepts()) {
    TRY_ASSIGN(trusted, trust.With(upstream_ca));
    TRY_ASSIGN(ca, authorities.Take(grants.rules, BootTime()));
  }
  return std::unique_ptr<Proxy>(
      std::make_unique<AsioProxy>(loop, grants, std::move(guard), std::move(trusted), std::move(ca),
                                  grants.judges() ? watched.Of(grants.never_send) : nullptr,
                                  std::move(log), std::move(notify), times));
}

}  // namespace coffer::egress
