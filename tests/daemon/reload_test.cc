// SPDX-License-Identifier: Apache-2.0
//
// SIGHUP: what can change while the daemon runs does, all of it or nothing, and what cannot is named. And what happens by
// itself: what is older than its time is forgotten.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <memory>

#include "base/unique_fd.h"
#include "tests/daemon/daemon.h"
#include "tests/support/wreck.h"

namespace coffer::test {
namespace {

// A key and a certificate that signs itself.
void MakeCertificate(const std::string& certificate_file, const std::string& key_file) {
  const std::unique_ptr<EVP_PKEY, decltype(&::EVP_PKEY_free)> key(::EVP_EC_gen("P-256"),
                                                                  ::EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&::X509_free)> made(::X509_new(), ::X509_free);
  ::X509_set_version(made.get(), 2);
  ::ASN1_INTEGER_set(::X509_get_serialNumber(made.get()), 1);
  ::X509_gmtime_adj(::X509_getm_notBefore(made.get()), 0);
  ::X509_gmtime_adj(::X509_getm_notAfter(made.get()), 3600);
  ::X509_set_pubkey(made.get(), key.get());
  ASSERT_GT(::X509_sign(made.get(), key.get(), ::EVP_sha256()), 0);
  std::FILE* file = std::fopen(certificate_file.c_str(), "w");
  ::PEM_write_X509(file, made.get());
  std::fclose(file);
  file = std::fopen(key_file.c_str(), "w");
  ::PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
  ASSERT_EQ(::chmod(key_file.c_str(), 0600), 0);
}

// The certificate that a new connection is shown, as bytes; empty if the handshake fails.
std::string ShownCertificate(uint16_t port) {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0) {
    return "";
  }
  const std::unique_ptr<SSL_CTX, decltype(&::SSL_CTX_free)> context(
      ::SSL_CTX_new(::TLS_client_method()), ::SSL_CTX_free);
  const std::unique_ptr<SSL, decltype(&::SSL_free)> ssl(::SSL_new(context.get()), ::SSL_free);
  ::SSL_set_fd(ssl.get(), fd.get());
  if (::SSL_connect(ssl.get()) != 1) {
    return "";
  }
  const std::unique_ptr<X509, decltype(&::X509_free)> shown(::SSL_get1_peer_certificate(ssl.get()),
                                                            ::X509_free);
  unsigned char* bytes = nullptr;
  const int size = shown ? ::i2d_X509(shown.get(), &bytes) : 0;
  std::string text(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
  ::OPENSSL_free(bytes);
  return text;
}

class Hangup : public ::testing::Test {
 protected:
  void Write(const std::string& text) {
    std::ofstream(file_, std::ios::trunc) << text;
    ASSERT_EQ(::chmod(file_.c_str(), 0644), 0);
  }
  void Hang() const { ::kill(daemon_.monitor(), SIGHUP); }
  bool SaysSoon(const std::string& text) {
    return WaitUntil([&] { return Contains(daemon_.Said(), text); });
  }

  TempDir dir_;
  std::string file_ = dir_ / "coffer.toml";
  Daemon daemon_;
};

TEST_F(Hangup, ANewCertificateIsShownToWhoComesNext) {
  const std::string certificate = dir_ / "cert.pem", key = dir_ / "key.pem";
  MakeCertificate(certificate, key);
  ASSERT_TRUE(daemon_.Start({"--tls-cert", certificate, "--tls-key", key}));
  const std::string first = ShownCertificate(daemon_.port());
  ASSERT_FALSE(first.empty());
  EXPECT_EQ(ShownCertificate(daemon_.port()), first);
  // A key that does not belong to it changes nothing, and is told.
  MakeCertificate(dir_ / "other.pem", key);
  Hang();
  EXPECT_TRUE(WaitUntil([&] { return !daemon_.Said().empty(); }));
  EXPECT_EQ(ShownCertificate(daemon_.port()), first);
  // A whole pair.
  ASSERT_EQ(::rename((dir_ / "other.pem").c_str(), certificate.c_str()), 0);
  Hang();
  EXPECT_TRUE(WaitUntil([&] {
    const std::string now = ShownCertificate(daemon_.port());
    return !now.empty() && now != first;
  }));
}

TEST_F(Hangup, WhatNeedsARestartIsNamedAndNothingIsReloaded) {
  const std::string before = "[quotas.agent]\ncalls = [\"1000/d\"]\n";
  Write(before);
  ASSERT_TRUE(daemon_.Start({"--config", file_}));
  const std::string key = daemon_.NewKey("some", "agent", "a")["key"];
  const auto call = [&] { return daemon_.Call(key, Bash("echo " + NewToken())).Outcome(); };
  EXPECT_EQ(call(), "success");
  const std::string tight = "[quotas.agent]\ncalls = [\"1/d\"]\n";
  Write(tight + "[[webhook]]\nurl = \"http://127.0.0.1:9/\"\n");
  Hang();
  EXPECT_TRUE(SaysSoon("[[webhook]] changed, which needs a restart; nothing was reloaded"))
      << daemon_.Said();
  EXPECT_EQ(call(), "success") << "the other half of that file was taken";
  Write(tight +
        "[otlp]\nendpoint = \"http://127.0.0.1:9/\"\n[[peer]]\nuid = 61001\n"
        "tenant = \"local\"\nrole = \"agent\"\n");
  Hang();
  EXPECT_TRUE(SaysSoon("[otlp], the first or last [[peer]] changed")) << daemon_.Said();
  EXPECT_EQ(call(), "success");
  // The control: without those the rest is taken.
  Write(tight);
  Hang();
  EXPECT_TRUE(WaitUntil([&] { return call() == "denied"; }));
}

TEST_F(Hangup, WhatIsOlderThanItsTimeIsForgotten) {
  Write("[tenant.long.retention]\ncalls = \"365d\"\n");
  ASSERT_TRUE(daemon_.Start({"--config", file_}));
  const std::string key = daemon_.NewKey("some", "agent", "a")["key"];
  const std::string keeps = daemon_.NewKey("long", "agent", "a")["key"];
  std::string old = daemon_.Call(key, Bash("echo 1")).At("call_id");
  const std::string fresh = daemon_.Call(key, Bash("echo 2")).At("call_id");
  std::string kept = daemon_.Call(keeps, Bash("echo 3")).At("call_id");
  EXPECT_EQ(daemon_.Stop(), 0);
  old = AgeCall(daemon_.state(), old, 100);
  kept = AgeCall(daemon_.state(), kept, 100);
  ASSERT_TRUE(daemon_.Start({"--config", file_}));
  EXPECT_TRUE(WaitUntil([&] { return daemon_.Ask("GET", "/v1/calls/" + old, key).status == 404; }));
  EXPECT_EQ(daemon_.Ask("GET", "/v1/calls/" + old + "/receipt", key).status, 404);
  EXPECT_EQ(daemon_.Ask("GET", "/v1/calls/" + fresh, key).status, 200);
  // Its tenant keeps longer. The test has edited its row to make it old, and the daemon says so: it is there.
  const HttpAnswer still = daemon_.Ask("GET", "/v1/calls/" + kept, keeps);
  EXPECT_EQ(still.status, 500) << still.text;
  EXPECT_EQ(still.body.value("code", ""), "record.broken") << still.text;
}

}  // namespace
}  // namespace coffer::test
