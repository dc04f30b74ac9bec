// SPDX-License-Identifier: Apache-2.0
//
// The HTTP requests of one connection, each judged by itself: forwarded ones ("GET http://host/",
// "GET https://host/"), and those in a tunnel that is looked into.
//
// A request that is refused is answered and ends the connection, so nothing after it is read in a
// doubtful state. The upstream connection is kept for the next request only if it leads to the same
// host and port, both with TLS or both without. Redirects go back to the program, whose next
// request is judged like any other.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "egress/buffered_stream.h"
#include "egress/proxy_context.h"
#include "egress/proxy_request.h"
#include "egress/watchdog.h"

namespace coffer::egress {

class RequestRelay {
 public:
  // Forwards requests; with `tunnel` only those for its host. Everything given outlives it.
  RequestRelay(const ProxyContext& context, BufferedStream& client, Watchdog& watchdog,
               std::optional<policy::HostAndPort> tunnel, bool tls)
      : context_(context),
        client_(client),
        watchdog_(watchdog),
        access_end_(context.executor, [this] { EndBoth(); }),
        tunnel_(std::move(tunnel)),
        tls_(tls) {}

  // Until the connection ends. `head` is a first head that was read already, or "".
  net::Task<void> Run(std::string head);
  // Closes the upstream side, from outside.
  void End();

 private:
  void EndBoth();
  void DenyUnread();
  net::Task<bool> Exchange(const std::string& head);
  net::Task<void> RefuseValue(OpenTraffic& open, size_t line);
  net::Task<bool> Reach(const ProxyRequest& request, OpenTraffic& open);
  net::Task<bool> SendRequest(const ProxyRequest& request, OpenTraffic& open);
  net::Task<bool> Answer(const ProxyRequest& request, OpenTraffic& open);
  net::Task<void> Refuse(int status, std::string code, std::string message, std::string fix);

  const ProxyContext& context_;
  BufferedStream& client_;
  Watchdog& watchdog_;
  Watchdog access_end_;
  const std::optional<policy::HostAndPort> tunnel_;
  const bool tls_;
  std::unique_ptr<BufferedStream> upstream_;
  policy::HostAndPort upstream_to_;
  bool upstream_tls_ = false;
  bool upstream_ends_ = false;  // it takes no further request
  bool answered_ = false;       // a response has begun: no other can be sent
  bool taken_whole_ = false;    // the request that is answered has left with all of its body
};

}  // namespace coffer::egress
