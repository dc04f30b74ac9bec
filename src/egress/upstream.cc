// SPDX-License-Identifier: Apache-2.0
#include "egress/upstream.h"

#include <fmt/format.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>

#include "egress/buffered_stream.h"
#include "egress/watchdog.h"
#include "net/http_head.h"

namespace coffer::egress {
namespace {

using net::error_code;
using net::kAwaitTuple;
using net::Task;
using policy::IpAddress;
using tcp = boost::asio::ip::tcp;
using Endpoint = net::asio::generic::stream_protocol::endpoint;

constexpr std::chrono::seconds kConnectTime{5};  // for one address
constexpr std::chrono::seconds kHandshakeTime{10};
constexpr size_t kMostAddresses = 4;  // that are tried; all are looked at
constexpr unsigned char kOfferedProtocols[] = "\x08http/1.1";

tcp::endpoint EndpointOf(const IpAddress& address, uint16_t port) {
  if (address.is_v6()) {
    net::asio::ip::address_v6::bytes_type bytes;
    std::copy_n(address.data(), bytes.size(), bytes.begin());
    return {net::asio::ip::address_v6(bytes), port};
  }
  net::asio::ip::address_v4::bytes_type bytes;
  std::copy_n(address.data(), bytes.size(), bytes.begin());
  return {net::asio::ip::address_v4(bytes), port};
}

// Set to talk to exactly this host, whose certificate must say so.
UniqueSsl MakeClient(SSL_CTX* trust, const policy::HostName& host) {
  UniqueSsl ssl(trust == nullptr ? nullptr : ::SSL_new(trust));
  if (ssl == nullptr) {
    return nullptr;
  }
  ::SSL_set_connect_state(ssl.get());
  X509_VERIFY_PARAM* const verify = ::SSL_get0_param(ssl.get());
  ::X509_VERIFY_PARAM_set_hostflags(verify, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  bool set =
      ::SSL_set_alpn_protos(ssl.get(), kOfferedProtocols, sizeof(kOfferedProtocols) - 1) == 0;
  if (host.address()) {
    set = set &&
          ::X509_VERIFY_PARAM_set1_ip(verify, host.address()->data(), host.address()->size()) == 1;
  } else {
    set = set &&
          ::X509_VERIFY_PARAM_set1_host(verify, host.text().data(), host.text().size()) == 1 &&
          ::SSL_set_tlsext_host_name(ssl.get(), host.text().c_str()) == 1;
  }
  return set ? std::move(ssl) : nullptr;
}

}  // namespace

Upstream::Upstream(const net::IoExecutor& executor, const policy::ParsedGrants& grants,
                   AddressGuard guard, ServerTrust* trust)
    : executor_(executor),
      grants_(grants),
      guard_(std::move(guard)),
      trust_(trust),
      names_(executor_) {}

Task<std::vector<IpAddress>> Upstream::Resolve(const policy::HostName& host) {
  if (host.address()) {
    co_return std::vector<IpAddress>{*host.address()};
  }
  if (const auto fixed = grants_.resolve.find(host.text()); fixed != grants_.resolve.end()) {
    co_return fixed->second;
  }
  std::vector<IpAddress> addresses = co_await names_.Find(host.text());
  co_return addresses;
}

Task<Dialed> Upstream::Dial(const policy::HostName& host, uint16_t port) {
  Dialed dialed;
  if (const std::optional<std::string> objection = ObjectToHostName(host)) {
    dialed.refused = true;
    dialed.problem = fmt::format("{} is {}", host.text(), *objection);
    co_return dialed;
  }
  const policy::HostAndPort to{host, port};
  if (grants_.is_proxied(host)) {
    dialed = co_await DialThroughProxy(to);
    co_return dialed;
  }
  std::vector<IpAddress> addresses = co_await Resolve(host);
  for (const IpAddress& address : addresses) {
    if (const std::optional<std::string> objection = guard_.Object(host, address)) {
      dialed.refused = true;
      dialed.problem =
          fmt::format("{} leads to {}, which is {}", host.text(), address.text(), *objection);
      const std::string range = fmt::format("{}/{}", address.text(), address.size() * 8);
      dialed.fix = grants_.of_tool ? fmt::format(
                                         "[egress] dangerously_addresses = [\"{}\"] in the "
                                         "configuration",
                                         range)
                                   : "--dangerously-allow-address " + range;
      co_return dialed;
    }
  }
  dialed = co_await Connect(to, std::move(addresses));
  co_return dialed;
}

// One of these addresses, which the caller has looked at.
Task<Dialed> Upstream::Connect(const policy::HostAndPort& to, std::vector<IpAddress> addresses) {
  Dialed dialed;
  const policy::HostName& host = to.host;
  const uint16_t port = to.port;
  dialed.problem = addresses.empty() ? fmt::format("{} has no address", host.text()) : "";
  for (size_t i = 0; i < addresses.size() && i < kMostAddresses; ++i) {
    const tcp::endpoint endpoint = EndpointOf(addresses[i], port);
    net::Socket socket(executor_);
    error_code error;
    socket.open(net::asio::generic::stream_protocol(endpoint.protocol()), error);
    if (!error) {
      Watchdog watchdog(executor_, [&socket] {
        error_code ignored;
        socket.close(ignored);
      });
      watchdog.Within(kConnectTime);
      const auto [failed] = co_await socket.async_connect(Endpoint(endpoint), kAwaitTuple);
      error = failed;
      watchdog.Stop();
    }
    if (!error) {
      socket.set_option(tcp::no_delay(true), error);
      dialed.problem.clear();
      dialed.stream = net::MakePlainStream(std::move(socket));
      co_return dialed;
    }
    dialed.problem =
        fmt::format("{}:{} cannot be reached: {}", host.text(), port,
                    error == net::asio::error::operation_aborted ? "no answer" : error.message());
  }
  co_return dialed;
}

// The operator named the proxy, so its own address is not judged. It finds the host's address, and judges that or does not.
Task<Dialed> Upstream::DialThroughProxy(const policy::HostAndPort& to) {
  const policy::HostAndPort proxy = *grants_.upstream_proxy;
  std::vector<IpAddress> addresses = co_await Resolve(proxy.host);
  Dialed dialed = co_await Connect(proxy, std::move(addresses));
  if (dialed.stream == nullptr) {
    dialed.problem = fmt::format("the upstream proxy: {}", dialed.problem);
    co_return dialed;
  }
  net::Stream& stream = *dialed.stream;
  Watchdog watchdog(executor_, [&stream] { stream.Close(); });
  watchdog.Within(kHandshakeTime);
  const std::string where = to.text();
  const std::string request = fmt::format("CONNECT {} HTTP/1.1\r\nHost: {}\r\n\r\n", where, where);
  const bool sent = co_await stream.Write(request, "");
  // Byte by byte: what follows the head is the server's.
  std::string head;
  while (sent && head.size() < net::kMostHeadBytes && !head.ends_with("\r\n\r\n")) {
    char byte = 0;
    const size_t got = co_await stream.ReadSome(&byte, 1);
    if (got == 0) {
      break;
    }
    head += byte;
  }
  watchdog.Stop();
  const Result<net::HttpResponseHead> answer = net::ParseResponseHead(head, "CONNECT");
  if (!answer.ok() || answer->status != 200) {
    dialed.stream.reset();
    dialed.problem =
        answer.ok() ? fmt::format("the upstream proxy answered {} for {}", answer->status, where)
                    : fmt::format("the upstream proxy did not answer for {}", where);
  }
  co_return dialed;
}

Task<Dialed> Upstream::DialTls(const policy::HostName& host, uint16_t port) {
  Dialed dialed = co_await Dial(host, port);
  if (dialed.stream == nullptr) {
    co_return dialed;
  }
  UniqueSsl ssl = trust_ == nullptr ? nullptr : MakeClient(trust_->context(), host);
  if (ssl == nullptr) {
    dialed.stream.reset();
    dialed.problem = "TLS cannot be set up";
    co_return dialed;
  }
  auto tls = std::make_unique<TlsStream>(std::move(dialed.stream), std::move(ssl), "");
  Watchdog watchdog(executor_, [&tls] { tls->Close(); });
  watchdog.Within(kHandshakeTime);
  const bool shaken = co_await tls->Handshake();
  watchdog.Stop();
  const long verified = ::SSL_get_verify_result(tls->ssl());
  if (!shaken || verified != X509_V_OK) {
    dialed.problem = verified != X509_V_OK
                         ? fmt::format("the certificate of {}:{} is not good: {}", host.text(),
                                       port, ::X509_verify_cert_error_string(verified))
                         : fmt::format("{}:{} does not speak TLS as it should", host.text(), port);
    co_return dialed;
  }
  dialed.stream = std::move(tls);
  co_return dialed;
}

}  // namespace coffer::egress
