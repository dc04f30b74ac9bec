// SPDX-License-Identifier: Apache-2.0
//
// The certificate authority of one boundary, for connections that are looked into.
//
// Its key is made for one boundary, a little ahead of it at most (ca_stock.h), lives in the memory
// of the egress process alone, and is gone with the boundary. Its certificate is trusted inside
// that boundary and nowhere else, for a day at most. It is good for the names of the intercepting
// rules only (name constraints, RFC 5280 section 4.2.1.10), so that even a thief of the key could
// not speak for another host to a program inside. Leaves and their key are made when a host is
// first asked for, and kept.
#pragma once

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "egress/tls_stream.h"
#include "policy/egress_rule.h"
#include "policy/host_name.h"

namespace coffer::egress {

class BoundaryCa {
 public:
  // What a CA for these rules may speak for. Rules with the same ones can have a CA of the same form.
  static std::string Constraints(const std::vector<policy::EgressRule>& rules);
  static Result<std::unique_ptr<BoundaryCa>> Make(const std::string& constraints);

  // PEM.
  const std::string& certificate() const { return pem_; }
  // Ready to accept as `host`: TLS 1.2 or 1.3, HTTP/1.1 only. Null if it cannot be made.
  UniqueSsl MakeServer(const policy::HostName& host);

 private:
  struct FreeKey {
    void operator()(EVP_PKEY* key) const { ::EVP_PKEY_free(key); }
  };
  struct FreeCertificate {
    void operator()(X509* certificate) const { ::X509_free(certificate); }
  };
  using UniqueKey = std::unique_ptr<EVP_PKEY, FreeKey>;
  using UniqueCertificate = std::unique_ptr<X509, FreeCertificate>;

  BoundaryCa() = default;
  UniqueCertificate MakeLeaf(const policy::HostName& host);
  UniqueSslContext MakeContext(const policy::HostName& host);

  UniqueKey key_;
  UniqueKey leaf_key_;  // one for all leaves: they live in the same process. Null before the first
  UniqueCertificate certificate_;
  std::string pem_;
  std::map<std::string, UniqueSslContext> contexts_;  // by host; at most kMostLeaves
};

}  // namespace coffer::egress
