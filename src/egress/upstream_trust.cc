// SPDX-License-Identifier: Apache-2.0
#include "egress/upstream_trust.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdlib.h>

#include "base/sys.h"
#include "base/trust_files.h"

namespace coffer::egress {
namespace {

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

}  // namespace

UpstreamTrust UpstreamTrust::OfThisHost() {
  constexpr size_t kMost = 4 << 20;
  UpstreamTrust trust;
  if (const char* const named = ::getenv("SSL_CERT_FILE"); named != nullptr) {
    if (Result<std::string> text = sys::ReadFile(named, kMost); text.ok()) {
      trust.host_ = std::move(text).value();
    }
    return trust;
  }
  for (const char* const path : kTrustFiles) {
    if (Result<std::string> text = sys::ReadFile(path, kMost); text.ok()) {
      trust.host_ = std::move(text).value();
      break;
    }
  }
  return trust;
}

Result<std::shared_ptr<SSL_CTX>> UpstreamTrust::With(const std::string& upstream_ca) {
  if (last_ != nullptr && upstream_ca == upstream_ca_) {
    return last_;
  }
  std::shared_ptr<SSL_CTX> context(::SSL_CTX_new(::TLS_client_method()), ::SSL_CTX_free);
  if (context == nullptr) {
    return Internal("egress.trust", "this OpenSSL cannot make a client");
  }
  ::SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  ::SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  ::SSL_CTX_set_options(context.get(), SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  ::SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  ::SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  if (!upstream_ca.empty() && AddTrusted(context.get(), upstream_ca) == 0) {
    return Refused("policy.egress", "the upstream certificates hold none that can be read",
                   "give a PEM file with BEGIN CERTIFICATE in it (--upstream-ca, or "
                   "egress.upstream_ca in the configuration)");
  }
  if (AddTrusted(context.get(), host_) == 0 && upstream_ca.empty()) {
    return HostFault(
        "egress.trust", "this host has no list of trusted certificates",
        "install ca-certificates, or give --upstream-ca (egress.upstream_ca in the configuration)");
  }
  upstream_ca_ = upstream_ca;
  last_ = std::move(context);
  return last_;
}

}  // namespace coffer::egress
