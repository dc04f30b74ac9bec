// SPDX-License-Identifier: Apache-2.0
//
// TLS through the real server, with a certificate made here.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <memory>

#include "tests/gateway/harness.h"
#include "tests/support/temp_dir.h"

namespace coffer::gateway {
namespace {

class Tls : public ::testing::Test {
 protected:
  void SetUp() override {
    MakeCertificate("server");
    config_.tcp.emplace_back();
    config_.tls = TlsPair{dir_.Read("server.crt"), dir_.Read("server.key")};
  }

  void MakeCertificate(const std::string& name) {
    EVP_PKEY* key = ::EVP_EC_gen("P-256");
    X509* cert = ::X509_new();
    ::X509_set_version(cert, 2);
    ::ASN1_INTEGER_set(::X509_get_serialNumber(cert), 1);
    ::X509_gmtime_adj(::X509_getm_notBefore(cert), 0);
    ::X509_gmtime_adj(::X509_getm_notAfter(cert), 3600);
    ::X509_set_pubkey(cert, key);
    X509_NAME* subject = ::X509_get_subject_name(cert);
    ::X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                                 reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
    ::X509_set_issuer_name(cert, subject);
    ASSERT_GT(::X509_sign(cert, key, ::EVP_sha256()), 0);
    std::FILE* file = std::fopen((dir_ / (name + ".crt")).c_str(), "w");
    ::PEM_write_X509(file, cert);
    std::fclose(file);
    file = std::fopen((dir_ / (name + ".key")).c_str(), "w");
    ::PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(file);
    ::X509_free(cert);
    ::EVP_PKEY_free(key);
  }

  const test::TempDir dir_;
  ServerConfig config_;
};

// A client; `connected` is whether the handshake succeeded.
struct Client {
  Client(uint16_t port, int lowest, int highest, const char* ciphers = nullptr)
      : raw(RawClient::Tcp(port)) {
    context = ::SSL_CTX_new(::TLS_client_method());
    ::SSL_CTX_set_security_level(context, 0);
    ::SSL_CTX_set_min_proto_version(context, lowest);
    ::SSL_CTX_set_max_proto_version(context, highest);
    if (ciphers != nullptr) {
      ::SSL_CTX_set_cipher_list(context, ciphers);
    }
    ssl = ::SSL_new(context);
    ::SSL_set_fd(ssl, raw.fd());
    connected = ::SSL_connect(ssl) == 1;
    ::ERR_clear_error();
  }
  ~Client() {
    ::SSL_free(ssl);
    ::SSL_CTX_free(context);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  std::string Ask(const std::string& request, std::string_view until) {
    ::SSL_write(ssl, request.data(), static_cast<int>(request.size()));
    std::string all;
    std::array<char, 16384> buffer;
    while (all.find(until) == std::string::npos) {
      const int count = ::SSL_read(ssl, buffer.data(), buffer.size());
      if (count <= 0) {
        break;
      }
      all.append(buffer.data(), static_cast<size_t>(count));
    }
    return all;
  }

  RawClient raw;
  SSL_CTX* context;
  SSL* ssl;
  bool connected = false;
};

TEST_F(Tls, AnswersWithTls12And13) {
  RunningServer server(config_);
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    Client client(server.port(), version, version);
    ASSERT_TRUE(client.connected) << version;
    for (int i = 0; i < 3; ++i) {
      EXPECT_NE(client.Ask(Request("GET", "/healthz"), "}").find("200 OK"), std::string::npos);
    }
  }
}

TEST_F(Tls, OlderVersionsAndWeakCiphersAreRefused) {
  RunningServer server(config_);
  EXPECT_FALSE(Client(server.port(), TLS1_VERSION, TLS1_1_VERSION).connected);
  EXPECT_FALSE(
      Client(server.port(), TLS1_2_VERSION, TLS1_2_VERSION, "ECDHE-ECDSA-AES128-SHA").connected);
  EXPECT_TRUE(Client(server.port(), TLS1_2_VERSION, TLS1_2_VERSION, "ECDHE-ECDSA-AES128-GCM-SHA256")
                  .connected);
}

TEST_F(Tls, BodiesAndStreamsGoThrough) {
  RunningServer server(config_);
  Client client(server.port(), TLS1_2_VERSION, TLS1_3_VERSION);
  ASSERT_TRUE(client.connected);
  EXPECT_NE(client.Ask(CallOf(R"({"tool":"big"})"), "0\r\n\r\n").find("200 OK"), std::string::npos);
  server.OnLoop([&] {
    server.service.AddEvent(CallEvent::Kind::kStdout, "over tls");
    server.service.EndEvents();
  });
  EXPECT_NE(client.Ask(Request("GET", "/v1/calls/" + kCallId + "/events", "agent-key"), "0\r\n\r\n")
                .find("over tls"),
            std::string::npos);
}

TEST_F(Tls, APlainRequestIsCut) {
  RunningServer server(config_);
  RawClient client = RawClient::Tcp(server.port());
  client.Send(Request("GET", "/healthz"));
  EXPECT_TRUE(client.Ends());
  Client next(server.port(), TLS1_2_VERSION, TLS1_3_VERSION);
  EXPECT_TRUE(next.connected);
}

TEST_F(Tls, AHandshakeThatDoesNotComeIsCut) {
  config_.http.limits.handshake_time = std::chrono::milliseconds(200);
  RunningServer server(config_);
  RawClient client = RawClient::Tcp(server.port());
  EXPECT_TRUE(client.Ends());
  server.OnLoop([&] { EXPECT_EQ(server.server().stats().timed_out, 1U); });
}

TEST_F(Tls, AnOriginMustHaveTheScheme) {
  RunningServer server(config_);
  Client client(server.port(), TLS1_2_VERSION, TLS1_3_VERSION);
  EXPECT_NE(
      client.Ask(Request("GET", "/healthz", {}, "Origin: http://localhost\r\n"), "}").find("403"),
      std::string::npos);
  EXPECT_NE(client.Ask(Request("GET", "/healthz", {}, "Origin: https://localhost\r\n"), "}")
                .find("200 OK"),
            std::string::npos);
}

std::string Certificate(const Client& client) {
  X509* const shown = ::SSL_get1_peer_certificate(client.ssl);
  std::string bytes(32, '\0');
  unsigned size = 0;
  ::X509_digest(shown, ::EVP_sha256(), reinterpret_cast<unsigned char*>(bytes.data()), &size);
  ::X509_free(shown);
  return bytes;
}

TEST_F(Tls, ANewCertificateIsForTheNextHandshake) {
  RunningServer server(config_);
  Client before(server.port(), TLS1_2_VERSION, TLS1_3_VERSION);
  ASSERT_TRUE(before.connected);
  MakeCertificate("other");
  const TlsPair other{dir_.Read("other.crt"), dir_.Read("other.key")};
  server.OnLoop([&] {
    // What does not fit changes nothing.
    EXPECT_FALSE(server.server().ReplaceTls({other.certificate, config_.tls->key}).ok());
    EXPECT_FALSE(server.server().ReplaceTls({"", ""}).ok());
  });
  Client unchanged(server.port(), TLS1_2_VERSION, TLS1_3_VERSION);
  ASSERT_TRUE(unchanged.connected);
  EXPECT_EQ(Certificate(unchanged), Certificate(before));
  server.OnLoop([&] { EXPECT_TRUE(server.server().ReplaceTls(other).ok()); });
  Client after(server.port(), TLS1_2_VERSION, TLS1_3_VERSION);
  ASSERT_TRUE(after.connected);
  EXPECT_NE(Certificate(after), Certificate(before));
  // The connection that was there goes on.
  EXPECT_NE(before.Ask(Request("GET", "/healthz"), "}").find("200 OK"), std::string::npos);
}

TEST_F(Tls, FilesThatDoNotFitAreRefused) {
  MakeCertificate("other");
  auto loop = net::MakeLoop();
  FakeService service;
  config_.tls->key = dir_.Read("other.key");
  auto server = Server::Open(*loop, service, config_);
  ASSERT_FALSE(server.ok());
  EXPECT_EQ(server.error().code, "gateway.tls.key");
  config_.tls->certificate = dir_ / "missing";
  server = Server::Open(*loop, service, config_);
  ASSERT_FALSE(server.ok());
  EXPECT_EQ(server.error().code, "gateway.tls.certificate");
}

}  // namespace
}  // namespace coffer::gateway
