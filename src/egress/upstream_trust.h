// SPDX-License-Identifier: Apache-2.0
//
// What servers are verified against: the certificates that this host trusts, and those of the operator or of --upstream-ca.
//
// It holds no session and nothing of a call, so calls may share it. The host's list is read once; a process that keeps it
// for long does not see that the host changed it.
#pragma once

#include <openssl/types.h>

#include <memory>
#include <string>

#include "base/result.h"

namespace coffer::egress {

class UpstreamTrust {
 public:
  // $SSL_CERT_FILE, or the usual places. Reads files: make it while that is possible.
  static UpstreamTrust OfThisHost();

  // With the PEM text beside them. Kept until another text is asked for: reading some hundred certificates takes time.
  Result<std::shared_ptr<SSL_CTX>> With(const std::string& upstream_ca);

 private:
  std::string host_;  // PEM; empty: this host has no list
  std::string upstream_ca_;
  std::shared_ptr<SSL_CTX> last_;
};

}  // namespace coffer::egress
