// SPDX-License-Identifier: Apache-2.0
#include "egress/proxy_connection.h"
#include "egress/socks.h"

namespace coffer::egress {

net::Task<void> ProxyConnection::Socks() {
  for (const auto read : {ReadSocksGreeting, ReadSocksRequest}) {
    SocksStep step = read(client_->buffer());
    while (step.state == SocksStep::State::kMore) {
      const bool more = co_await client_->Fill();
      if (!more) {
        DenyUnread("no request came: the client sent only a part of SOCKS 5");
        co_return;
      }
      step = read(client_->buffer());
    }
    if (step.state == SocksStep::State::kBroken) {
      OpenTraffic open(context_, {});
      open.Deny(step.problem, "");
      const bool told = co_await client_->Write(step.answer);
      if (told) {
        co_await client_->stream().FinishWriting();
      }
      co_return;
    }
    client_->buffer().erase(0, step.consumed);
    if (read == ReadSocksRequest) {
      co_await Tunnel(step.to, Dialect::kSocks);
      co_return;
    }
    const bool told = co_await client_->Write(step.answer);
    if (!told) {
      co_return;
    }
  }
}

}  // namespace coffer::egress
