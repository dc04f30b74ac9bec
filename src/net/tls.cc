// SPDX-License-Identifier: Apache-2.0
#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>

namespace coffer::net {
namespace {

namespace ssl = asio::ssl;

class ServerTlsStream : public Stream {
 public:
  ServerTlsStream(Socket socket, ssl::context& context) : stream_(std::move(socket), context) {}

  Task<bool> Handshake() {
    const auto [error] = co_await stream_.async_handshake(ssl::stream_base::server, kAwaitTuple);
    co_return !error;
  }
  Task<size_t> ReadSome(char* data, size_t size) override {
    const auto [error, count] =
        co_await stream_.async_read_some(asio::buffer(data, size), kAwaitTuple);
    co_return error ? 0 : count;
  }
  Task<bool> Write(std::string_view first, std::string_view second) override {
    const std::array buffers = {asio::const_buffer(first.data(), first.size()),
                                asio::const_buffer(second.data(), second.size())};
    const auto [error, count] = co_await asio::async_write(stream_, buffers, kAwaitTuple);
    co_return !error;
  }
  Task<void> FinishWriting() override {
    // close_notify is sent, the peer's is not waited for: a silent peer would hold the connection.
    ::SSL_shutdown(stream_.native_handle());
    error_code ignored;
    stream_.next_layer().shutdown(Socket::shutdown_send, ignored);
    co_return;
  }
  bool PeerGone() override { return HasHungUp(stream_.next_layer().native_handle()); }
  void CancelRead() override {
    error_code ignored;
    stream_.next_layer().cancel(ignored);
  }
  void Close() override {
    error_code ignored;
    stream_.next_layer().close(ignored);
  }

 private:
  ssl::stream<Socket> stream_;
};

class Context : public TlsContext {
 public:
  Context() : context_(ssl::context::tls_server) {}

  Status LoadTexts(const std::string& certificate, const std::string& key) {
    SSL_CTX* raw = context_.native_handle();
    ::SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
    ::SSL_CTX_set_options(raw, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA |
                                   SSL_OP_NO_TICKET);
    ::SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
    ::SSL_CTX_set_num_tickets(raw, 0);
    ::SSL_CTX_set_mode(raw,
                       SSL_MODE_RELEASE_BUFFERS);  // an idle connection holds no 32 KiB of buffers
    const bool settings = ::SSL_CTX_set_cipher_list(
                              raw,
                              "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"
                              "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"
                              "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305") == 1 &&
                          ::SSL_CTX_set1_groups_list(raw, "X25519:P-256:P-384") == 1;
    ::SSL_CTX_set_alpn_select_cb(raw, &Context::SelectProtocol, nullptr);
    if (!settings) {
      return Internal("gateway.tls.settings",
                      "this OpenSSL does not know the ciphers or groups we ask for");
    }
    error_code error;
    context_.use_certificate_chain(asio::buffer(certificate), error);
    if (error) {
      ::ERR_clear_error();
      return HostFault("gateway.tls.certificate", "cannot use the certificate",
                       "give a PEM file with the server's certificate first, then the chain");
    }
    context_.use_private_key(asio::buffer(key), ssl::context::pem, error);
    if (error || ::SSL_CTX_check_private_key(raw) != 1) {
      ::ERR_clear_error();
      return HostFault("gateway.tls.key", "cannot use the key with the certificate",
                       "give the PEM file of the key that the certificate was made for, readable "
                       "only to its owner");
    }
    return {};
  }

  std::unique_ptr<Stream> Wrap(Socket socket) override {
    return std::make_unique<ServerTlsStream>(std::move(socket), context_);
  }
  Task<bool> Handshake(Stream* stream) override {
    return static_cast<ServerTlsStream*>(stream)->Handshake();
  }

 private:
  static int SelectProtocol(SSL*, const unsigned char** chosen, unsigned char* chosen_size,
                            const unsigned char* offered, unsigned offered_size, void*) {
    static constexpr unsigned char kOurs[] = "\x08http/1.1";
    unsigned char* out = nullptr;
    if (::SSL_select_next_proto(&out, chosen_size, kOurs, sizeof(kOurs) - 1, offered,
                                offered_size) != OPENSSL_NPN_NEGOTIATED) {
      return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    *chosen = out;
    return SSL_TLSEXT_ERR_OK;
  }

  ssl::context context_;
};

}  // namespace

Result<std::shared_ptr<TlsContext>> TlsContext::Load(const std::string& certificate,
                                                     const std::string& key) {
  auto context = std::make_shared<Context>();
  TRY(context->LoadTexts(certificate, key));
  return std::shared_ptr<TlsContext>(std::move(context));
}

}  // namespace coffer::net
