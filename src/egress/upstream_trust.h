// SPDX-License-Identifier: Apache-2.0
//
// The certificates that servers are verified with: those that this host trusts, and those of the operator or
// --upstream-ca.
//
// It holds no session and no data of a call, so calls may share it. The host's list is read once; a process that keeps
// it for long does not see that the host changed it. Most calls judge no request and need none of it.
#pragma once

#include <openssl/types.h>

#include <memory>
#include <string>

#include "base/result.h"

namespace coffer::egress {

// Certificates to verify a server with.
class ServerTrust {
 public:
  // Of PEM texts.
  ServerTrust(std::string upstream_ca, std::shared_ptr<const std::string> host)
      : upstream_ca_(std::move(upstream_ca)), host_(std::move(host)) {}
  // Made at the first call: to parse 140 certificates takes longer than a whole call that asks no
  // server. Null if this OpenSSL cannot make a client.
  SSL_CTX* context();

 private:
  const std::string upstream_ca_;
  const std::shared_ptr<const std::string> host_;
  std::shared_ptr<SSL_CTX> context_;
};

class UpstreamTrust {
 public:
  // $SSL_CERT_FILE, or the usual places. Reads files: make it while that is possible.
  static UpstreamTrust OfThisHost();

  // With the PEM text beside them. Kept until another text is asked for. Reads this host's list if
  // OfThisHost did not; where files can no longer be read, it is as if the host had none.
  Result<std::shared_ptr<ServerTrust>> With(const std::string& upstream_ca);

 private:
  void ReadHost();

  bool read_ = false;
  std::shared_ptr<const std::string> host_ =
      std::make_shared<std::string>();  // PEM; empty: this host has no list
  std::string upstream_ca_;
  std::shared_ptr<ServerTrust> last_;
};

}  // namespace coffer::egress
