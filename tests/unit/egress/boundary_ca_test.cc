// SPDX-License-Identifier: Apache-2.0
//
// The authority of a boundary as a client sees it: OpenSSL's own verification of chains and names decides.
#include "egress/boundary_ca.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <vector>

namespace coffer::egress {
namespace {

using policy::EgressRule;
using policy::HostName;

EgressRule Allow(std::string_view text) { return policy::ParseAllow(text).value(); }
HostName CaHost(std::string_view text) { return HostName::Parse(text).value(); }

std::shared_ptr<X509> Read(const std::string& pem) {
  BIO* const bio = ::BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  std::shared_ptr<X509> certificate(::PEM_read_bio_X509(bio, nullptr, nullptr, nullptr),
                                    ::X509_free);
  ::BIO_free(bio);
  return certificate;
}

// The certificate that a client would be shown for `host`.
std::string Leaf(BoundaryCa& ca, std::string_view host) {
  const UniqueSsl server = ca.MakeServer(CaHost(host));
  BIO* const bio = ::BIO_new(::BIO_s_mem());
  ::PEM_write_bio_X509(bio, ::SSL_get_certificate(server.get()));
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string pem(data, static_cast<size_t>(size));
  ::BIO_free(bio);
  return pem;
}

// What a client that trusts `ca` alone says about `leaf` when it wanted `host`: X509_V_OK, or why not.
int Verify(const std::string& ca, const std::string& leaf, const HostName& host) {
  X509_STORE* const store = ::X509_STORE_new();
  ::X509_STORE_add_cert(store, Read(ca).get());
  X509_STORE_CTX* const context = ::X509_STORE_CTX_new();
  const auto certificate = Read(leaf);
  ::X509_STORE_CTX_init(context, store, certificate.get(), nullptr);
  X509_VERIFY_PARAM* const wanted = ::X509_STORE_CTX_get0_param(context);
  ::X509_VERIFY_PARAM_set_purpose(wanted, X509_PURPOSE_SSL_SERVER);
  ::X509_VERIFY_PARAM_set_flags(wanted, X509_V_FLAG_X509_STRICT);
  if (host.address()) {
    ::X509_VERIFY_PARAM_set1_ip_asc(wanted, host.text().c_str());
  } else {
    ::X509_VERIFY_PARAM_set1_host(wanted, host.text().c_str(), 0);
  }
  ::X509_verify_cert(context);
  const int error = ::X509_STORE_CTX_get_error(context);
  ::X509_STORE_CTX_free(context);
  ::X509_STORE_free(store);
  return error;
}

TEST(BoundaryCa, SpeaksForTheRulesHostsAlone) {
  const std::vector<EgressRule> rules = {Allow("GET https://api.test/v1/**"),
                                         Allow("GET https://*.wild.test"), Allow("spliced.test")};
  const auto ca = BoundaryCa::Make(BoundaryCa::Constraints(rules));
  ASSERT_TRUE(ca.ok()) << ca.error().message;
  const std::string& pem = (*ca)->certificate();
  const auto verdict = [&](const char* name) {
    return Verify(pem, Leaf(**ca, name), CaHost(name));
  };
  EXPECT_EQ(verdict("api.test"), X509_V_OK);
  EXPECT_EQ(verdict("a.wild.test"), X509_V_OK);
  // The same key signs for names outside, and no client believes it.
  for (const char* name :
       {"evil.test", "spliced.test", "notapi.test", "api.test.evil.test", "example.com", "test"}) {
    EXPECT_EQ(verdict(name), X509_V_ERR_PERMITTED_VIOLATION) << name;
  }
  for (const char* address : {"127.0.0.1", "8.8.8.8", "2606:2800::1"}) {
    EXPECT_EQ(verdict(address), X509_V_ERR_EXCLUDED_VIOLATION) << address;
  }
  // A leaf is for its own name.
  EXPECT_EQ(Verify(pem, Leaf(**ca, "api.test"), CaHost("a.wild.test")),
            X509_V_ERR_HOSTNAME_MISMATCH);
}

TEST(BoundaryCa, AnotherBoundarysLeafIsNotTrusted) {
  const std::vector<EgressRule> rules = {Allow("GET https://api.test/")};
  const auto ours = BoundaryCa::Make(BoundaryCa::Constraints(rules));
  const auto theirs = BoundaryCa::Make(BoundaryCa::Constraints(rules));
  ASSERT_TRUE(ours.ok() && theirs.ok());
  const std::string leaf = Leaf(**theirs, "api.test");
  EXPECT_EQ(Verify((*theirs)->certificate(), leaf, CaHost("api.test")), X509_V_OK);
  EXPECT_NE(Verify((*ours)->certificate(), leaf, CaHost("api.test")), X509_V_OK);
}

TEST(BoundaryCa, WithoutRulesItSpeaksForNothing) {
  const auto ca = BoundaryCa::Make(BoundaryCa::Constraints({}));
  ASSERT_TRUE(ca.ok()) << ca.error().message;
  EXPECT_EQ(Verify((*ca)->certificate(), Leaf(**ca, "api.test"), CaHost("api.test")),
            X509_V_ERR_PERMITTED_VIOLATION);
}

TEST(BoundaryCa, AddressesAndAnyHost) {
  std::vector<EgressRule> rules = {Allow("GET https://192.0.2.7/"),
                                   Allow("GET https://[2001:db8::1]/")};
  auto ca = BoundaryCa::Make(BoundaryCa::Constraints(rules));
  ASSERT_TRUE(ca.ok()) << ca.error().message;
  const auto verdict = [&](const char* name) {
    return Verify((*ca)->certificate(), Leaf(**ca, name), CaHost(name));
  };
  EXPECT_EQ(verdict("192.0.2.7"), X509_V_OK);
  EXPECT_EQ(verdict("2001:db8::1"), X509_V_OK);
  EXPECT_EQ(verdict("192.0.2.8"), X509_V_ERR_PERMITTED_VIOLATION);
  EXPECT_EQ(verdict("api.test"), X509_V_ERR_PERMITTED_VIOLATION);
  rules.resize(1);
  rules[0].host = policy::HostPattern::Any();
  ca = BoundaryCa::Make(BoundaryCa::Constraints(rules));
  ASSERT_TRUE(ca.ok()) << ca.error().message;
  EXPECT_EQ(verdict("api.test"), X509_V_OK);
  EXPECT_EQ(verdict("192.0.2.7"), X509_V_ERR_EXCLUDED_VIOLATION);
}

TEST(BoundaryCa, LivesAtMostADay) {
  const auto ca = BoundaryCa::Make(BoundaryCa::Constraints({}));
  ASSERT_TRUE(ca.ok());
  for (const std::string& pem : {(*ca)->certificate(), Leaf(**ca, "api.test")}) {
    const auto certificate = Read(pem);
    int days = 0;
    int seconds = 0;
    ::ASN1_TIME_diff(&days, &seconds, ::X509_get0_notBefore(certificate.get()),
                     ::X509_get0_notAfter(certificate.get()));
    EXPECT_LE(days * 86400 + seconds, 86400);
    EXPECT_GT(days * 86400 + seconds, 3600);
  }
}

TEST(BoundaryCa, LeavesAreKeptForTheNextConnection) {
  const auto ca = BoundaryCa::Make(BoundaryCa::Constraints({}));
  ASSERT_TRUE(ca.ok());
  const std::string first = Leaf(**ca, "a.test");
  EXPECT_EQ(Leaf(**ca, "a.test"), first);
  // Many hosts push it out, so it is made anew: nothing grows without end.
  for (int i = 0; i < 300; ++i) {
    ASSERT_NE((*ca)->MakeServer(CaHost("b" + std::to_string(i) + ".test")), nullptr);
  }
  EXPECT_NE(Leaf(**ca, "a.test"), first);
}

// One handshake over memory; what both sides agreed on, or nothing if they did not.
std::string Negotiate(BoundaryCa& own, const std::string& ca, const char* host,
                      const std::string& offered) {
  const std::shared_ptr<SSL_CTX> trust(::SSL_CTX_new(::TLS_client_method()), ::SSL_CTX_free);
  ::X509_STORE_add_cert(::SSL_CTX_get_cert_store(trust.get()), Read(ca).get());
  ::SSL_CTX_set_verify(trust.get(), SSL_VERIFY_PEER, nullptr);
  const std::shared_ptr<SSL> client(::SSL_new(trust.get()), ::SSL_free);
  const UniqueSsl server = own.MakeServer(CaHost("api.test"));
  BIO* near = nullptr;
  BIO* far = nullptr;
  ::BIO_new_bio_pair(&near, 0, &far, 0);
  ::SSL_set_bio(client.get(), near, near);
  ::SSL_set_bio(server.get(), far, far);
  ::SSL_set_tlsext_host_name(client.get(), host);
  ::SSL_set1_host(client.get(), host);
  if (!offered.empty()) {
    ::SSL_set_alpn_protos(client.get(), reinterpret_cast<const unsigned char*>(offered.data()),
                          static_cast<unsigned>(offered.size()));
  }
  ::SSL_set_connect_state(client.get());
  for (int i = 0; i < 20; ++i) {
    ::SSL_do_handshake(client.get());
    ::SSL_do_handshake(server.get());
  }
  if (::SSL_is_init_finished(client.get()) == 0 || ::SSL_is_init_finished(server.get()) == 0) {
    return "";
  }
  const unsigned char* chosen = nullptr;
  unsigned length = 0;
  ::SSL_get0_alpn_selected(client.get(), &chosen, &length);
  return length == 0 ? "none" : std::string(reinterpret_cast<const char*>(chosen), length);
}

TEST(BoundaryCa, SpeaksHttp11) {
  const std::vector<EgressRule> rules = {Allow("GET https://api.test/")};
  const auto ca = BoundaryCa::Make(BoundaryCa::Constraints(rules));
  ASSERT_TRUE(ca.ok());
  const std::string& pem = (*ca)->certificate();
  const std::string h2 = "\x02h2";
  const std::string h1 = "\x08http/1.1";
  EXPECT_EQ(Negotiate(**ca, pem, "api.test", ""), "none");
  EXPECT_EQ(Negotiate(**ca, pem, "api.test", h2 + h1), "http/1.1");
  EXPECT_EQ(Negotiate(**ca, pem, "api.test", h2), "") << "refused, not guessed";
  EXPECT_EQ(Negotiate(**ca, pem, "other.test", h1), "") << "the leaf is for another name";
}

}  // namespace
}  // namespace coffer::egress
