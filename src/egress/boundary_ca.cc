// SPDX-License-Identifier: Apache-2.0
#include "egress/boundary_ca.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <array>
#include <set>

namespace coffer::egress {
namespace {

constexpr long kLifetime = 23L * 3600;
constexpr long kClockSkew = 3600;  // a boundary has the host's clock; other hosts never see these
constexpr size_t kMostLeaves = 256;
constexpr unsigned char kProtocols[] = "\x08http/1.1";
constexpr size_t kPointBytes = 65;  // of P-256, uncompressed
constexpr int kKeyIdBytes = 20;

Error CaError(const char* what) {
  ::ERR_clear_error();
  return HostFault(
      "egress.ca", what,
      "OpenSSL does not work on this host: see its openssl.cnf (`openssl version -d`)");
}

// Takes what a first key does not need out of OpenSSL's first use, which a boundary waits for.
// Texts of its errors are shown nowhere here. The usual random generator works with AES, and for
// that OpenSSL makes a list of all ciphers; one over SHA-256 is as strong (SP 800-90A), and
// signatures need that anyway. What the host's configuration of OpenSSL says comes after this, and
// counts.
void BeginLightly() {
  static const bool begun = [] {
    const bool set = ::OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CRYPTO_STRINGS, nullptr) == 1 &&
                     ::RAND_set_DRBG_type(nullptr, "HASH-DRBG", nullptr, nullptr, "SHA256") == 1;
    ::ERR_clear_error();  // a generator that is there already stays
    return set;
  }();
  (void)begun;
}

EVP_PKEY* NewKey() { return ::EVP_EC_gen("P-256"); }

// 16 random bytes, positive.
bool SetSerial(X509* certificate) {
  unsigned char bytes[16];
  if (::RAND_bytes(bytes, sizeof(bytes)) != 1) {
    return false;
  }
  // The highest bit is the sign (RFC 5280 section 4.1.2.2); the next one keeps all 16 bytes in the
  // encoding.
  bytes[0] = static_cast<unsigned char>((bytes[0] & 0x7f) | 0x40);
  BIGNUM* const number = ::BN_bin2bn(bytes, sizeof(bytes), nullptr);
  const bool set = number != nullptr &&
                   ::BN_to_ASN1_INTEGER(number, ::X509_get_serialNumber(certificate)) != nullptr;
  ::BN_free(number);
  return set;
}

bool SetName(X509_NAME* name, const std::string& text) {
  return ::X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                      reinterpret_cast<const unsigned char*>(text.data()),
                                      static_cast<int>(text.size()), -1, 0) == 1;
}

bool AddExtension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  ::X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const made = ::X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  const bool added = made != nullptr && ::X509_add_ext(certificate, made, -1) == 1;
  ::X509_EXTENSION_free(made);
  return added;
}

// The key and its identifier, the first 160 bits of SHA-256 (RFC 7093 section 2). X509_set_pubkey
// would look through all encoders and decoders, which takes longer than making the key; a boundary
// waits for this certificate.
bool SetAuthorityKey(X509* certificate, EVP_PKEY* key) {
  std::array<unsigned char, kPointBytes> point;
  size_t size = 0;
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  if (::EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size(),
                                        &size) != 1 ||
      size != point.size() || point[0] != POINT_CONVERSION_UNCOMPRESSED ||
      ::EVP_Digest(point.data(), size, digest.data(), nullptr, ::EVP_sha256(), nullptr) != 1) {
    return false;
  }
  void* const given = ::OPENSSL_memdup(point.data(), size);
  if (given == nullptr ||
      ::X509_PUBKEY_set0_param(::X509_get_X509_PUBKEY(certificate),
                               ::OBJ_nid2obj(NID_X9_62_id_ecPublicKey), V_ASN1_OBJECT,
                               ::OBJ_nid2obj(NID_X9_62_prime256v1),
                               static_cast<unsigned char*>(given), static_cast<int>(size)) != 1) {
    ::OPENSSL_free(given);
    return false;
  }
  ASN1_OCTET_STRING* const id = ::ASN1_OCTET_STRING_new();
  const bool added =
      id != nullptr && ::ASN1_OCTET_STRING_set(id, digest.data(), kKeyIdBytes) == 1 &&
      ::X509_add1_ext_i2d(certificate, NID_subject_key_identifier, id, 0, X509V3_ADD_DEFAULT) == 1;
  ::ASN1_OCTET_STRING_free(id);
  return added;
}

// Version 3, a serial number, and a day.
bool Begin(X509* certificate) {
  return ::X509_set_version(certificate, X509_VERSION_3) == 1 && SetSerial(certificate) &&
         ::X509_gmtime_adj(::X509_getm_notBefore(certificate), -kClockSkew) != nullptr &&
         ::X509_gmtime_adj(::X509_getm_notAfter(certificate), kLifetime) != nullptr;
}

// A host in the form of openssl's configuration. The values are A-labels and numbers: no comma, no colon but IPv6's.
std::string AltName(const policy::HostName& host) {
  return host.address() ? "IP:" + host.text() : "DNS:" + host.text();
}

int SelectProtocol(SSL*, const unsigned char** chosen, unsigned char* chosen_size,
                   const unsigned char* offered, unsigned offered_size, void*) {
  unsigned char* out = nullptr;
  if (::SSL_select_next_proto(&out, chosen_size, kProtocols, sizeof(kProtocols) - 1, offered,
                              offered_size) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *chosen = out;
  return SSL_TLSEXT_ERR_OK;
}

}  // namespace

// What the rules may cover. A constraint on a name covers what lies below it too; leaves are made
// for judged names only. A kind of name without a constraint is free (RFC 5280 section 4.2.1.10),
// so there is one for each: without rules for names none is permitted, without rules for addresses
// all are excluded.
std::string BoundaryCa::Constraints(const std::vector<policy::EgressRule>& rules) {
  std::set<std::string> names;
  std::set<std::string> addresses;
  bool any_name = false;
  for (const policy::EgressRule& rule : rules) {
    if (rule.tls != policy::TlsMode::kIntercept || rule.deny) {
      continue;
    }
    const policy::HostName& domain = rule.host.domain();
    if (rule.host.kind() == policy::HostPattern::Kind::kAny) {
      any_name = true;
    } else if (domain.address()) {
      addresses.insert(fmt::format("permitted;IP:{}/{}", domain.text(),
                                   domain.address()->is_v6()
                                       ? "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"
                                       : "255.255.255.255"));
    } else {
      names.insert("permitted;DNS:" + domain.text());
    }
  }
  if (any_name) {
    names.clear();
  } else if (names.empty()) {
    names.insert("permitted;DNS:invalid");
  }
  if (addresses.empty()) {
    addresses = {"excluded;IP:0.0.0.0/0.0.0.0", "excluded;IP:::/::"};
  }
  addresses.merge(names);
  return fmt::format("critical,{}", fmt::join(addresses, ","));
}

Result<std::unique_ptr<BoundaryCa>> BoundaryCa::Make(const std::string& constraints) {
  BeginLightly();
  std::unique_ptr<BoundaryCa> ca(new BoundaryCa());
  ca->key_.reset(NewKey());
  ca->certificate_.reset(::X509_new());
  X509* const certificate = ca->certificate_.get();
  if (ca->key_ == nullptr || certificate == nullptr) {
    return CaError("cannot make a key for the boundary's certificates");
  }
  const bool made =
      Begin(certificate) && SetName(::X509_get_subject_name(certificate), "Cofferdam boundary") &&
      ::X509_set_issuer_name(certificate, ::X509_get_subject_name(certificate)) == 1 &&
      AddExtension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
      AddExtension(certificate, certificate, NID_key_usage, "critical,keyCertSign") &&
      SetAuthorityKey(certificate, ca->key_.get()) &&
      AddExtension(certificate, certificate, NID_name_constraints, constraints) &&
      ::X509_sign(certificate, ca->key_.get(), ::EVP_sha256()) > 0;
  if (!made) {
    return CaError("cannot make the boundary's own certificate");
  }
  BIO* const text = ::BIO_new(::BIO_s_mem());
  char* data = nullptr;
  if (text != nullptr && ::PEM_write_bio_X509(text, certificate) == 1) {
    const long size = BIO_get_mem_data(text, &data);
    ca->pem_.assign(data, static_cast<size_t>(size));
  }
  ::BIO_free(text);
  if (ca->pem_.empty()) {
    return CaError("cannot write the boundary's own certificate");
  }
  return ca;
}

BoundaryCa::UniqueCertificate BoundaryCa::MakeLeaf(const policy::HostName& host) {
  if (leaf_key_ == nullptr) {
    leaf_key_.reset(NewKey());
  }
  UniqueCertificate leaf(::X509_new());
  X509* const certificate = leaf.get();
  // Clients read the alternative name. The common name has at most 64 characters, and OpenSSL holds
  // one that looks like a DNS name to the constraints of those, so an address must not stand there.
  const bool shown = !host.address() && host.text().size() <= 64;
  const std::string name = shown ? host.text() : "host";
  const bool made =
      certificate != nullptr && leaf_key_ != nullptr && Begin(certificate) &&
      ::X509_set_pubkey(certificate, leaf_key_.get()) == 1 &&
      SetName(::X509_get_subject_name(certificate), name) &&
      ::X509_set_issuer_name(certificate, ::X509_get_subject_name(certificate_.get())) == 1 &&
      AddExtension(certificate, certificate_.get(), NID_basic_constraints, "critical,CA:FALSE") &&
      AddExtension(certificate, certificate_.get(), NID_key_usage, "critical,digitalSignature") &&
      AddExtension(certificate, certificate_.get(), NID_ext_key_usage, "serverAuth") &&
      AddExtension(certificate, certificate_.get(), NID_authority_key_identifier, "keyid") &&
      AddExtension(certificate, certificate_.get(), NID_subject_alt_name, AltName(host)) &&
      ::X509_sign(certificate, key_.get(), ::EVP_sha256()) > 0;
  return made ? std::move(leaf) : nullptr;
}

UniqueSslContext BoundaryCa::MakeContext(const policy::HostName& host) {
  const UniqueCertificate leaf = MakeLeaf(host);
  UniqueSslContext context(::SSL_CTX_new(::TLS_server_method()));
  if (leaf == nullptr || context == nullptr ||
      ::SSL_CTX_use_certificate(context.get(), leaf.get()) != 1 ||
      ::SSL_CTX_use_PrivateKey(context.get(), leaf_key_.get()) != 1) {
    return nullptr;
  }
  ::SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  // Nothing of one connection is kept for another: no session, no ticket.
  ::SSL_CTX_set_options(context.get(),
                        SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
  ::SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  ::SSL_CTX_set_num_tickets(context.get(), 0);
  ::SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  ::SSL_CTX_set_alpn_select_cb(context.get(), SelectProtocol, nullptr);
  return context;
}

UniqueSsl BoundaryCa::MakeServer(const policy::HostName& host) {
  auto found = contexts_.find(host.text());
  if (found == contexts_.end()) {
    UniqueSslContext made = MakeContext(host);
    ::ERR_clear_error();
    if (made == nullptr) {
      return nullptr;
    }
    if (contexts_.size() >= kMostLeaves) {
      contexts_.erase(contexts_.begin());
    }
    found = contexts_.emplace(host.text(), std::move(made)).first;
  }
  UniqueSsl ssl(::SSL_new(found->second.get()));
  if (ssl != nullptr) {
    ::SSL_set_accept_state(ssl.get());
  }
  return ssl;
}

}  // namespace coffer::egress
