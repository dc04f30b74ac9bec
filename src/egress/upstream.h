// SPDX-License-Identifier: Apache-2.0
//
// The way to a server: resolve a name, look at every address, dial one that was looked at.
//
// The answer of the resolver is used once and never asked for again, so no second answer can lead
// elsewhere. If one of the addresses may not be dialled, none is: a name with a public and a
// private address is how filters are passed. Names that the program chose below a wildcard are
// looked up as far as lookup_budget.h allows, and their answers are kept. Upstream TLS is always
// verified, against what this host trusts and --upstream-ca.
#pragma once

#include <boost/asio/basic_waitable_timer.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "egress/address_guard.h"
#include "egress/lookup_budget.h"
#include "egress/name_lookup.h"
#include "egress/upstream_trust.h"
#include "net/asio.h"
#include "policy/egress_grants.h"

namespace coffer::egress {

struct Dialed {
  enum class Refusal : uint8_t {
    kNone,     // a fault, if there is no stream
    kAddress,  // that may not be dialled
    kLookups,  // of names that the program chose: there are no more
  };
  std::unique_ptr<net::Stream> stream;  // null: it failed
  std::string problem;                  // one line for a person
  Refusal refusal = Refusal::kNone;
  std::string fix;       // of a refusal
  std::string leads_to;  // of kAddress: the address, if a name led to it

  // What the program is told.
  int status() const;
  std::string reason() const;
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
  // Of a name that the program chose. None, and a refusal, if it may not be looked up.
  net::Task<std::vector<policy::IpAddress>> ResolveChosen(const policy::HostAndPort& to,
                                                          Dialed& dialed);
  // False: refused.
  bool ChargeLookup(const policy::HostAndPort& to, Dialed& dialed);
  std::vector<policy::IpAddress> WorthKeeping(const policy::HostName& host,
                                              std::vector<policy::IpAddress> found) const;

  using Clock = std::chrono::steady_clock;
  using Timer =
      net::asio::basic_waitable_timer<Clock, net::asio::wait_traits<Clock>, net::IoExecutor>;
  const net::IoExecutor executor_;
  const policy::ParsedGrants& grants_;
  const AddressGuard guard_;
  ServerTrust* const trust_;
  NameLookup names_;
  LookupBudget lookups_;
  Timer answered_;  // never expires; its waits are cancelled when a chosen name was looked up
};

}  // namespace coffer::egress
