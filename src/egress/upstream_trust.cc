// SPDX-License-Identifier: Apache-2.0
#include "egress/upstream_trust.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdlib.h>

#include <functional>

#include "base/sys.h"
#include "base/trust_files.h"

namespace coffer::egress {
namespace {

// Does something with each certificate of a PEM text. The number of those where it succeeded.
size_t ForEachCertificate(const std::string& pem, const std::function<bool(X509*)>& take) {
  BIO* const text = ::BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  size_t count = 0;
  while (X509* const certificate = ::PEM_read_bio_X509(text, nullptr, nullptr, nullptr)) {
    count += take(certificate) ? 1 : 0;
    ::X509_free(certificate);
  }
  ::BIO_free(text);
  ::ERR_clear_error();
  return count;
}

}  // namespace

UpstreamTrust UpstreamTrust::OfThisHost() {
  UpstreamTrust trust;
  trust.ReadHost();
  return trust;
}

void UpstreamTrust::ReadHost() {
  constexpr size_t kMost = 4 << 20;
  read_ = true;
  if (const char* const named = ::getenv("SSL_CERT_FILE"); named != nullptr) {
    if (Result<std::string> text = sys::ReadFile(named, kMost); text.ok()) {
      host_ = std::make_shared<std::string>(std::move(text).value());
    }
    return;
  }
  for (const char* const path : kTrustFiles) {
    if (Result<std::string> text = sys::ReadFile(path, kMost); text.ok()) {
      host_ = std::make_shared<std::string>(std::move(text).value());
      return;
    }
  }
}

SSL_CTX* ServerTrust::context() {
  if (context_ != nullptr) {
    return context_.get();
  }
  context_.reset(::SSL_CTX_new(::TLS_client_method()), ::SSL_CTX_free);
  if (context_ == nullptr) {
    return nullptr;
  }
  ::SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION);
  ::SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
  ::SSL_CTX_set_options(context_.get(), SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  ::SSL_CTX_set_session_cache_mode(context_.get(), SSL_SESS_CACHE_OFF);
  ::SSL_CTX_set_mode(context_.get(), SSL_MODE_RELEASE_BUFFERS);
  X509_STORE* const store = ::SSL_CTX_get_cert_store(context_.get());
  for (const std::string& pem : {upstream_ca_, *host_}) {
    (void)ForEachCertificate(
        pem, [store](X509* certificate) { return ::X509_STORE_add_cert(store, certificate) == 1; });
  }
  return context_.get();
}

Result<std::shared_ptr<ServerTrust>> UpstreamTrust::With(const std::string& upstream_ca) {
  if (last_ != nullptr && upstream_ca == upstream_ca_) {
    return last_;
  }
  if (!read_) {
    ReadHost();
  }
  if (!upstream_ca.empty() && ForEachCertificate(upstream_ca, [](X509*) { return true; }) == 0) {
    return Refused("policy.egress", "the upstream certificates hold none that can be read",
                   "give a PEM file with BEGIN CERTIFICATE in it (--upstream-ca, or "
                   "egress.upstream_ca in the configuration)");
  }
  if (upstream_ca.empty() && host_->find("-----BEGIN ") == std::string::npos) {
    return HostFault(
        "egress.trust", "this host has no list of trusted certificates",
        "install ca-certificates, or give --upstream-ca (egress.upstream_ca in the configuration)");
  }
  upstream_ca_ = upstream_ca;
  last_ = std::make_shared<ServerTrust>(upstream_ca, host_);
  return last_;
}

}  // namespace coffer::egress
