// SPDX-License-Identifier: Apache-2.0
#include "egress/proxy.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <list>

#include "base/sys.h"
#include "egress/boundary_ca.h"
#include "egress/proxy_connection.h"

namespace coffer::egress {
namespace {

using net::error_code;
using raw::Syscall;

constexpr std::chrono::milliseconds kFinishTime{1500};

class AsioProxy : public Proxy {
 public:
  AsioProxy(net::Loop& loop, const policy::ParsedGrants& grants, AddressGuard guard,
            UniqueSslContext trust, std::unique_ptr<BoundaryCa> ca, TrafficLog log)
      : loop_(loop),
        trust_(std::move(trust)),
        ca_(std::move(ca)),
        upstream_(loop, grants, std::move(guard), trust_.get()),
        context_{net::ContextOf(loop).get_executor(),
                 grants,
                 upstream_,
                 ca_.get(),
                 std::move(log),
                 open_} {}

  const std::string& ca_certificate() const override {
    static const std::string kNone;
    return ca_ == nullptr ? kNone : ca_->certificate();
  }

  void Serve(UniqueFd listener) override {
    listener_.emplace(net::ContextOf(loop_).get_executor(), listener.Release());
    Accept();
  }

  void Finish(std::function<void()> ended) override {
    listener_.reset();
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

 private:
  using Descriptor = net::asio::posix::basic_stream_descriptor<net::IoExecutor>;

  void Ended() {
    if (const std::function<void()> ended = std::exchange(ended_, nullptr)) {
      while (!open_.empty()) {
        (*open_.begin())->Close();
      }
      ended();
    }
  }

  // accept4 by hand: the role's filter lets nothing else make a socket out of the listener.
  void Accept() {
    if (!listener_ || waiting_ || connections_.size() >= kMostProxyConnections) {
      return;
    }
    waiting_ = true;
    listener_->async_wait(Descriptor::wait_read, [this](error_code error) {
      waiting_ = false;
      if (error || !listener_) {
        return;
      }
      const long accepted =
          Syscall(SYS_accept4, listener_->native_handle(), 0, 0, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (accepted >= 0) {
        Start(static_cast<int>(accepted));
      }
      Accept();
    });
  }

  void Start(int fd) {
    net::Socket socket(context_.executor);
    error_code error;
    socket.assign(net::asio::generic::stream_protocol(AF_INET, IPPROTO_TCP), fd, error);
    if (error) {
      (void)Syscall(SYS_close, fd);
      return;
    }
    connections_.push_back(std::make_unique<ProxyConnection>(context_, std::move(socket)));
    const auto place = std::prev(connections_.end());
    net::asio::co_spawn(context_.executor, (*place)->Run(),
                        [this, place](const std::exception_ptr&) {
                          connections_.erase(place);
                          if (connections_.empty()) {
                            Ended();
                          }
                          Accept();
                        });
  }

  net::Loop& loop_;
  const UniqueSslContext trust_;
  const std::unique_ptr<BoundaryCa> ca_;
  Upstream upstream_;
  std::set<OpenTraffic*> open_;
  const ProxyContext context_;
  std::optional<Descriptor> listener_;
  std::list<std::unique_ptr<ProxyConnection>> connections_;
  std::function<void()> ended_;
  std::shared_ptr<void> deadline_;
  bool waiting_ = false;
};

}  // namespace

Result<std::unique_ptr<Proxy>> MakeProxy(net::Loop& loop, const policy::ParsedGrants& grants,
                                         const std::string& upstream_ca, AddressGuard guard,
                                         TrafficLog log) {
  UniqueSslContext trust;
  std::unique_ptr<BoundaryCa> ca;
  if (grants.intercepts()) {
    TRY_ASSIGN(trust, LoadUpstreamTrust(upstream_ca));
    TRY_ASSIGN(ca, BoundaryCa::Make(grants.rules));
  }
  return std::unique_ptr<Proxy>(std::make_unique<AsioProxy>(
      loop, grants, std::move(guard), std::move(trust), std::move(ca), std::move(log)));
}

}  // namespace coffer::egress
