// SPDX-License-Identifier: Apache-2.0
#include "egress/proxy_connection.h"
#include "policy/synthetic_block.h"

namespace coffer::egress {
namespace {

constexpr size_t kLengthBytes = 2;  // in front of each message over TCP (RFC 1035, 4.2.2)
constexpr int kMostQueries = 64;    // of one connection

size_t LengthOf(std::string_view buffer) {
  return size_t{static_cast<unsigned char>(buffer[0])} << 8 | static_cast<unsigned char>(buffer[1]);
}

}  // namespace

net::Task<void> ProxyConnection::Redirected() {
  const Destination to = *redirected_;
  if (to.address == policy::IpAddress::V4(policy::kResolverAddress) &&
      to.port == policy::kResolverPort) {
    co_await Resolve();
    co_return;
  }
  if (std::optional<policy::HostName> name = context_.resolver.names().NameOf(to.address)) {
    policy::HostAndPort named{*std::move(name), to.port};
    co_await Tunnel(std::move(named), Dialect::kSilent);
    co_return;
  }
  Traffic traffic;
  traffic.host = to.address.text();
  traffic.port = to.port;
  OpenTraffic open(context_, std::move(traffic));
  open.Deny("no name that this call asked for has this address; connect to the name", "");
  co_await client_->stream().FinishWriting();
}

// DNS over TCP, which clients use where an answer might be long.
net::Task<void> ProxyConnection::Resolve() {
  for (int left = kMostQueries; left > 0; --left) {
    watchdog_.Within(kHeadTime);
    std::string& buffer = client_->buffer();
    while (buffer.size() < kLengthBytes || buffer.size() < kLengthBytes + LengthOf(buffer)) {
      const bool more = co_await client_->Fill();
      if (!more) {
        co_return;
      }
    }
    const size_t length = LengthOf(buffer);
    std::optional<std::string> answer =
        context_.resolver.Answer(std::string_view(buffer).substr(kLengthBytes, length));
    buffer.erase(0, kLengthBytes + length);
    if (!answer) {
      co_return;
    }
    const char size[] = {static_cast<char>(answer->size() >> 8),
                         static_cast<char>(answer->size() & 0xff)};
    answer->insert(0, size, sizeof(size));
    const bool told = co_await client_->Write(*answer);
    if (!told) {
      co_return;
    }
  }
}

}  // namespace coffer::egress
