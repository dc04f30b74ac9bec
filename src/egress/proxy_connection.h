// SPDX-License-Identifier: Apache-2.0
//
// One connection of a program inside to the proxy: HTTP CONNECT, a forwarded HTTP request, or
// SOCKS5, on the same port; or one that went to a synthetic address and was redirected, which says
// nothing to a proxy.
//
// The host and port that are asked for become one value, and that value is judged, resolved, dialled, compared with the
// server name of TLS and written down. A name that no rule allows is never resolved. A connection is opened only to an
// address that was looked at (upstream.h).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "egress/buffered_stream.h"
#include "egress/proxy_context.h"
#include "egress/request_relay.h"
#include "egress/watchdog.h"

namespace coffer::egress {

// The synthetic address that a redirected connection went to.
struct Destination {
  policy::IpAddress address;
  uint16_t port = 0;
};

class ProxyConnection {
 public:
  // `redirected`: nothing if it came to the proxy itself.
  ProxyConnection(const ProxyContext& context, net::Socket socket,
                  std::optional<Destination> redirected);

  // Until it has ended.
  net::Task<void> Run();
  // Closes everything, so that Run returns; from outside.
  void End();

 private:
  // How the program is told that its tunnel stands, or why not. A redirected one just finds itself
  // connected, or closed.
  enum class Dialect { kHttp, kSocks, kSilent };

  net::Task<void> Serve();
  net::Task<void> Redirected();
  net::Task<void> Resolve();
  net::Task<void> Socks();
  // Bytes came that name no host.
  void DenyUnread(std::string reason);
  net::Task<void> Tunnel(policy::HostAndPort to, Dialect dialect);
  net::Task<void> Splice(policy::HostAndPort to, const policy::EgressRule& rule, Dialect dialect,
                         OpenTraffic& open);
  net::Task<void> LookInto(policy::HostAndPort to, Dialect dialect, OpenTraffic& open);
  net::Task<void> Intercept(policy::HostAndPort to, OpenTraffic& open);
  net::Task<bool> ReadHello(const policy::HostName& host, OpenTraffic& open);
  net::Task<bool> PassHello(const policy::HostName& host, OpenTraffic& open);
  net::Task<bool> ReadSecondHello(const policy::HostName& host, OpenTraffic& open);
  net::Task<bool> TellOpen(Dialect dialect);
  net::Task<void> TellRefused(Dialect dialect, int status, std::string code, std::string message,
                              std::string fix);
  net::Task<void> Relay(std::optional<policy::HostAndPort> tunnel, bool tls, std::string head);

  const ProxyContext& context_;
  const std::optional<Destination> redirected_;
  std::unique_ptr<BufferedStream> client_;
  std::unique_ptr<BufferedStream> upstream_;  // of a tunnel that is not looked into
  RequestRelay* relay_ = nullptr;             // while there is one
  Watchdog watchdog_;
  Watchdog access_end_;  // of access that was granted for a time
};

}  // namespace coffer::egress
