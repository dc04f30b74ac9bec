// SPDX-License-Identifier: Apache-2.0
//
// Where Linux distributions keep the certificates that a host trusts, in one file. The first that exists counts.
#pragma once

#include <array>

namespace coffer {

inline constexpr std::array kTrustFiles = {"/etc/ssl/certs/ca-certificates.crt",
                                           "/etc/pki/tls/certs/ca-bundle.crt",
                                           "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"};

}  // namespace coffer
