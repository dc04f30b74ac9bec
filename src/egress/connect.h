// SPDX-License-Identifier: Apache-2.0
//
// A connection to a server whose addresses the caller has looked at, and TLS to exactly one host over it.
//
// Only these addresses are dialled, in their order, at most four of them: nothing is resolved here.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "egress/tls_stream.h"
#include "net/asio.h"
#include "policy/ip_address.h"

namespace coffer::egress {

inline constexpr size_t kMostDialled = 4;

struct Connected {
  std::unique_ptr<net::Stream> stream;  // null: no address could be reached
  std::string problem;                  // of the last address that was tried: "Connection refused"
};

// An address gets five seconds, and all of them together until `until` (of BootTime).
net::Task<Connected> ConnectToOneOf(net::IoExecutor executor,
                                    std::vector<policy::IpAddress> addresses, uint16_t port,
                                    Nanos until = Nanos::max());

// A client of `trust` whose handshake succeeds only if the certificate names `host`, a name or an
// address. Null if OpenSSL refuses.
UniqueSsl MakeTlsClient(SSL_CTX* trust, const std::string& host);

}  // namespace coffer::egress
