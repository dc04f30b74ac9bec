// SPDX-License-Identifier: Apache-2.0
#include "egress/connect.h"

#include <openssl/x509v3.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <optional>

#include "egress/watchdog.h"

namespace coffer::egress {
namespace {

using net::error_code;
using policy::IpAddress;
using tcp = boost::asio::ip::tcp;
using Endpoint = net::asio::generic::stream_protocol::endpoint;

constexpr Nanos kTimeOfOne = std::chrono::seconds(5);
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

}  // namespace

net::Task<Connected> ConnectToOneOf(net::IoExecutor executor, std::vector<IpAddress> addresses,
                                    uint16_t port, Nanos until) {
  Connected connected;
  for (size_t i = 0; i < addresses.size() && i < kMostDialled; ++i) {
    const tcp::endpoint endpoint = EndpointOf(addresses[i], port);
    net::Socket socket(executor);
    error_code error;
    socket.open(net::asio::generic::stream_protocol(endpoint.protocol()), error);
    if (!error) {
      Watchdog watchdog(executor, [&socket] {
        error_code ignored;
        socket.close(ignored);
      });
      watchdog.Until(std::min(BootTime() + kTimeOfOne, until));
      const auto [failed] = co_await socket.async_connect(Endpoint(endpoint), net::kAwaitTuple);
      error = failed;
      watchdog.Stop();
    }
    if (!error) {
      // A request goes out in several writes. Held back, each would wait for the acknowledgement of
      // the one before.
      socket.set_option(tcp::no_delay(true), error);
      connected.problem.clear();
      connected.stream = net::MakePlainStream(std::move(socket));
      co_return connected;
    }
    connected.problem =
        error == net::asio::error::operation_aborted ? "no answer" : error.message();
  }
  co_return connected;
}

UniqueSsl MakeTlsClient(SSL_CTX* trust, const std::string& host) {
  UniqueSsl ssl(trust == nullptr ? nullptr : ::SSL_new(trust));
  if (ssl == nullptr) {
    return nullptr;
  }
  ::SSL_set_connect_state(ssl.get());
  X509_VERIFY_PARAM* const verify = ::SSL_get0_param(ssl.get());
  // Such as *.example.com, but not w*.example.com (X509_check_host(3)).
  ::X509_VERIFY_PARAM_set_hostflags(verify, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  bool set =
      ::SSL_set_alpn_protos(ssl.get(), kOfferedProtocols, sizeof(kOfferedProtocols) - 1) == 0;
  // An address stands in a certificate as such, and RFC 6066 allows none in the hello.
  if (const std::optional<IpAddress> address = IpAddress::Parse(host)) {
    set = set && ::X509_VERIFY_PARAM_set1_ip(verify, address->data(), address->size()) == 1;
  } else {
    set = set && ::X509_VERIFY_PARAM_set1_host(verify, host.data(), host.size()) == 1 &&
          ::SSL_set_tlsext_host_name(ssl.get(), host.c_str()) == 1;
  }
  return set ? std::move(ssl) : nullptr;
}

}  // namespace coffer::egress
