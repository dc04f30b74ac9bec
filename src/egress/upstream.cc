// SPDX-License-Identifier: Apache-2.0
#include "egress/upstream.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include <boost/asio/ip/basic_resolver.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>

#include "base/trust_files.h"
#include "egress/buffered_stream.h"

namespace coffer::egress {
namespace {

using net::error_code;
using net::IoExecutor;
using net::kAwaitTuple;
using net::Task;
using policy::IpAddress;
using tcp = net::asio::ip::tcp;
using Resolver = net::asio::ip::basic_resolver<tcp, IoExecutor>;
using Endpoint = net::asio::generic::stream_protocol::endpoint;

constexpr std::chrono::seconds kConnectTime{5};  // for one address
constexpr std::chrono::seconds kHandshakeTime{10};
constexpr size_t kMostAddresses = 4;  // that are tried; all are looked at
constexpr unsigned char kProtocols[] = "\x08http/1.1";

IpAddress AddressOf(const net::asio::ip::address& address) {
  return address.is_v4() ? IpAddress::V4(address.to_v4().to_bytes())
                         : IpAddress::V6(address.to_v6().to_bytes());
}

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

// Certificates of a PEM text. The number of them.
size_t AddTrusted(SSL_CTX* context, const std::string& pem) {
  BIO* const text = ::BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  size_t count = 0;
  while (X509* const certificate = ::PEM_read_bio_X509(text, nullptr, nullptr, nullptr)) {
    count += ::X509_STORE_add_cert(::SSL_CTX_get_cert_store(context), certificate) == 1 ? 1 : 0;
    ::X509_free(certificate);
  }
  ::BIO_free(text);
  ::ERR_clear_error();
  return count;
}

// Set to talk to exactly this host, whose certificate must say so.
UniqueSsl MakeClient(SSL_CTX* trust, const policy::HostName& host) {
  UniqueSsl ssl(::SSL_new(trust));
  if (ssl == nullptr) {
    return nullptr;
  }
  ::SSL_set_connect_state(ssl.get());
  X509_VERIFY_PARAM* const verify = ::SSL_get0_param(ssl.get());
  ::X509_VERIFY_PARAM_set_hostflags(verify, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  bool set = ::SSL_set_alpn_protos(ssl.get(), kProtocols, sizeof(kProtocols) - 1) == 0;
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

Upstream::Upstream(net::Loop& loop, const policy::ParsedGrants& grants, AddressGuard guard,
                   SSL_CTX* trust)
    : context_(net::ContextOf(loop)), grants_(grants), guard_(std::move(guard)), trust_(trust) {}

Task<std::vector<IpAddress>> Upstream::Resolve(const policy::HostName& host) {
  if (host.address()) {
    co_return std::vector<IpAddress>{*host.address()};
  }
  if (const auto fixed = grants_.resolve.find(host.text()); fixed != grants_.resolve.end()) {
    co_return fixed->second;
  }
  std::vector<IpAddress> addresses;
  Resolver resolver(context_.get_executor());
  const auto [error, results] = co_await resolver.async_resolve(host.text(), "", kAwaitTuple);
  if (!error) {
    for (const auto& result : results) {
      addresses.push_back(AddressOf(result.endpoint().address()));
    }
  }
  co_return addresses;
}

Task<Dialed> Upstream::Dial(const policy::HostName& host, uint16_t port) {
  Dialed dialed;
  if (const std::optional<std::string> objection = ObjectToHostName(host)) {
    dialed.refused = true;
    dialed.problem = fmt::format("{} is {}", host.text(), *objection);
    co_return dialed;
  }
  const std::vector<IpAddress> addresses = co_await Resolve(host);
  for (const IpAddress& address : addresses) {
    if (const std::optional<std::string> objection = guard_.Object(host, address)) {
      dialed.refused = true;
      dialed.problem =
          fmt::format("{} leads to {}, which is {}", host.text(), address.text(), *objection);
      dialed.fix =
          fmt::format("--dangerously-allow-address {}/{}", address.text(), address.size() * 8);
      co_return dialed;
    }
  }
  dialed.problem = addresses.empty() ? fmt::format("{} has no address", host.text()) : "";
  for (size_t i = 0; i < addresses.size() && i < kMostAddresses; ++i) {
    const tcp::endpoint endpoint = EndpointOf(addresses[i], port);
    net::Socket socket(context_);
    error_code error;
    socket.open(net::asio::generic::stream_protocol(endpoint.protocol()), error);
    if (!error) {
      Watchdog watchdog(context_.get_executor(), [&socket] {
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

Task<Dialed> Upstream::DialTls(const policy::HostName& host, uint16_t port) {
  Dialed dialed = co_await Dial(host, port);
  if (dialed.stream == nullptr) {
    co_return dialed;
  }
  UniqueSsl ssl = trust_ == nullptr ? nullptr : MakeClient(trust_, host);
  if (ssl == nullptr) {
    dialed.stream.reset();
    dialed.problem = "TLS cannot be set up";
    co_return dialed;
  }
  auto tls = std::make_unique<TlsStream>(std::move(dialed.stream), std::move(ssl), "");
  Watchdog watchdog(context_.get_executor(), [&tls] { tls->Close(); });
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

Result<UniqueSslContext> LoadUpstreamTrust(const std::string& upstream_ca) {
  UniqueSslContext context(::SSL_CTX_new(::TLS_client_method()));
  if (context == nullptr) {
    return Internal("egress.trust", "this OpenSSL cannot make a client");
  }
  ::SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  ::SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  ::SSL_CTX_set_options(context.get(), SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  ::SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  ::SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  if (!upstream_ca.empty() && AddTrusted(context.get(), upstream_ca) == 0) {
    return Refused("policy.egress", "the file of --upstream-ca holds no certificate",
                   "give a PEM file with BEGIN CERTIFICATE in it");
  }
  const char* const named = ::getenv("SSL_CERT_FILE");
  bool loaded = named != nullptr && ::SSL_CTX_load_verify_file(context.get(), named) == 1;
  for (const char* const path : kTrustFiles) {
    loaded = loaded || (named == nullptr && ::SSL_CTX_load_verify_file(context.get(), path) == 1);
  }
  ::ERR_clear_error();
  if (!loaded && upstream_ca.empty()) {
    return HostFault(
        "egress.trust", "this host has no list of trusted certificates",
        "install ca-certificates, name a file in SSL_CERT_FILE, or give --upstream-ca");
  }
  return context;
}

}  // namespace coffer::egress
