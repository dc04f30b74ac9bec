// SPDX-License-Identifier: Apache-2.0
#include "egress/second_hello.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace coffer::egress {
namespace {

using namespace std::string_literals;

std::string Framed(char type, const std::string& part) {
  return ""s + type + "\x03\x03" + static_cast<char>(part.size() >> 8) +
         static_cast<char>(part.size()) + part;
}

const std::string kAskingHead = "\x02\x00\x00\x54\x03\x03"s;
const std::string kAsking =
    "\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91"
    "\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c"s;

// A certificate that signs itself.
void Certify(SSL_CTX* server) {
  const std::shared_ptr<EVP_PKEY> key(::EVP_EC_gen("P-256"), ::EVP_PKEY_free);
  const std::shared_ptr<X509> certificate(::X509_new(), ::X509_free);
  ::X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
  ::X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  ::X509_set_pubkey(certificate.get(), key.get());
  EXPECT_GT(::X509_sign(certificate.get(), key.get(), ::EVP_sha256()), 0);
  EXPECT_EQ(::SSL_CTX_use_certificate(server, certificate.get()), 1);
  EXPECT_EQ(::SSL_CTX_use_PrivateKey(server, key.get()), 1);
}

// What a server of OpenSSL answers to the first hello of its client.
std::string RealAnswer(const char* server_groups) {
  const std::shared_ptr<SSL_CTX> client(::SSL_CTX_new(::TLS_client_method()), ::SSL_CTX_free);
  const std::shared_ptr<SSL_CTX> server(::SSL_CTX_new(::TLS_server_method()), ::SSL_CTX_free);
  Certify(server.get());
  EXPECT_EQ(::SSL_CTX_set1_groups_list(server.get(), server_groups), 1);
  const std::shared_ptr<SSL> from(::SSL_new(client.get()), ::SSL_free);
  const std::shared_ptr<SSL> to(::SSL_new(server.get()), ::SSL_free);
  BIO* const there = ::BIO_new(::BIO_s_mem());
  BIO* const back = ::BIO_new(::BIO_s_mem());
  ::BIO_up_ref(there);
  ::SSL_set_bio(from.get(), ::BIO_new(::BIO_s_mem()), there);
  ::SSL_set_bio(to.get(), there, back);
  ::SSL_connect(from.get());
  ::SSL_accept(to.get());
  char* data = nullptr;
  const long size = BIO_get_mem_data(back, &data);
  return {data, static_cast<size_t>(size)};
}

TEST(SecondHello, ARealServerThatAsksForIt) {
  const std::string bytes = RealAnswer("P-521");
  ASSERT_GT(bytes.size(), 43U);
  for (size_t size = 0; size < 43; ++size) {
    EXPECT_EQ(ReadServerAnswer(bytes.substr(0, size)), ServerAnswer::kMore) << size;
  }
  EXPECT_EQ(ReadServerAnswer(bytes), ServerAnswer::kAsksAgain);
}

// The control: a server that takes the client's key.
TEST(SecondHello, ARealServerThatDoesNot) {
  const std::string bytes = RealAnswer("X25519");
  ASSERT_GT(bytes.size(), 43U);
  EXPECT_EQ(ReadServerAnswer(bytes), ServerAnswer::kOther);
}

TEST(SecondHello, OtherAnswers) {
  EXPECT_EQ(ReadServerAnswer(""), ServerAnswer::kMore);
  EXPECT_EQ(ReadServerAnswer("SSH-2.0-x\r\n"), ServerAnswer::kOther);
  EXPECT_EQ(ReadServerAnswer(Framed(21, "\x02\x28")), ServerAnswer::kOther);
  EXPECT_EQ(ReadServerAnswer(Framed(22, "\x0b\x00")), ServerAnswer::kOther);
  EXPECT_EQ(ReadServerAnswer(Framed(22, kAskingHead + std::string(32, 'r'))), ServerAnswer::kOther);
  // In pieces, as a server may send it.
  std::string pieces;
  for (const char byte : kAskingHead + kAsking) {
    EXPECT_EQ(ReadServerAnswer(pieces), ServerAnswer::kMore);
    pieces += Framed(22, ""s + byte);
  }
  EXPECT_EQ(ReadServerAnswer(pieces), ServerAnswer::kAsksAgain);
  // Empty records are not waited for without end.
  std::string empty;
  while (empty.size() < 1024) {
    EXPECT_EQ(ReadServerAnswer(empty), ServerAnswer::kMore);
    empty += Framed(22, "");
  }
  EXPECT_EQ(ReadServerAnswer(empty), ServerAnswer::kOther);
}

TEST(SecondHello, WhatMayComeBefore) {
  const std::string changed = Framed(20, "\x01");
  const std::string early = Framed(23, std::string(300, 'e'));
  const std::string hello = Framed(22, "\x01");
  EXPECT_EQ(SizeBeforeSecondHello(""), 0U);
  EXPECT_EQ(SizeBeforeSecondHello(changed + early + hello), changed.size() + early.size());
  EXPECT_EQ(SizeBeforeSecondHello(changed + early.substr(0, 100)), changed.size());
  EXPECT_EQ(SizeBeforeSecondHello(hello + changed), 0U);
  EXPECT_FALSE(IsSecondHelloNext(changed));
  EXPECT_FALSE(IsSecondHelloNext(early.substr(0, 1)));
  EXPECT_TRUE(IsSecondHelloNext(hello));
  EXPECT_TRUE(IsSecondHelloNext("GET / HTTP/1.1")) << "it is judged, and refused";
}

}  // namespace
}  // namespace coffer::egress
