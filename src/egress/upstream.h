// SPDX-License-Identifier: Apache-2.0
//
// The way to a server: resolve a name, look at every address, dial one that was looked at.
//
// The answer of the resolver is used once and never asked for again, so no second answer can lead
// elsewhere. If one of the addresses may not be dialled, none is: a name with a public and a
// private address is how filters are passed. Upstream TLS is always verified, against what this
// host trusts and --upstream-ca.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "egress/address_guard.h"
#include "egress/name_lookup.h"
#include "egress/upstream_trust.h"
#include "net/asio.h"
#include "policy/egress_grants.h"

namespace coffer::egress {

struct Dialed {
  std::unique_ptr<net::Stream> stream;  // null: it failed
  std::string problem;                  // one line for a person
  bool refused = false;                 // an address that may not be dialled, not a fault
  std::string fix;                      // of `refused`
};

class Upstream {
 public:
  // Everything given outlives it. `trust` may be null: then nothing is dialled with TLS.
  Upstream(const net::IoExecutor& executor, const policy::ParsedGrants& grants, AddressGuard guard,
           ServerTrust* trust);

  net::Task<Dialed> Dial(const policy::HostName& host, uint16_t port);
  // The same, with TLS to exactly this host inside.
  net::Task<Dialed> DialTls(const policy::HostName& host, uint16_t port);

 private:
  net::Task<Dialed> ConnectTo(const policy::HostAndPort& to,
                              std::vector<policy::IpAddress> addresses);
  net::Task<Dialed> DialThroughProxy(const policy::HostAndPort& to);
  net::Task<std::vector<policy::IpAddress>> Resolve(const policy::HostName& host);

  const net::IoExecutor executor_;
  const policy::ParsedGrants& grants_;
  const AddressGuard guard_;
  ServerTrust* const trust_;
  NameLookup names_;
};

}  // namespace coffer::egress
