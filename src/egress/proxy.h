// SPDX-License-Identifier: Apache-2.0
//
// The proxy of one boundary: accepts on the listeners it was given, answers its DNS queries, and carries what the rules
// allow.
//
// Which boundary a connection belongs to is said by the listener, which lies in that boundary's network: nothing that a
// program sends can make it another's. At most kMostProxyConnections at once; the others wait in the listeners' queues.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "egress/access.h"
#include "egress/address_guard.h"
#include "egress/listeners.h"
#include "egress/traffic.h"
#include "egress/upstream_trust.h"
#include "net/loop.h"
#include "policy/egress_grants.h"

namespace coffer::egress {

class CaStock;
class WatchedStock;

// How long a connection of a proxy may stand still. Tests have shorter times.
struct ProxyTimes {
  std::chrono::seconds idle{300};  // without a byte either way
  std::chrono::seconds answer{
      290};  // for the head of an answer; less, so that the program can be told
  std::chrono::seconds half_open{60};     // without a byte, once the program has closed its side
  Nanos minute{std::chrono::minutes(1)};  // of access that is granted for minutes
};

class Proxy {
 public:
  virtual ~Proxy() = default;
  // The certificate of the boundary's CA in PEM; "" if no rule needs one.
  virtual const std::string& ca_certificate() const = 0;
  // On the loop: serves those that are valid from here on. Once.
  virtual void Serve(Listeners listeners) = 0;
  // On the loop: about access that was asked for.
  virtual void Decide(const AccessDecision& decision) = 0;
  // On the loop: ends every connection; `ended` runs when all are written down.
  virtual void Finish(std::function<void()> ended) = 0;
  // Nothing of it runs any more: it may be dropped. Later than `ended` if something waits for a resolver.
  virtual bool idle() const = 0;
};

// `notify` hears on the loop of access that is asked for. `trust`, `authorities` and `watched` are
// asked only if a rule judges requests. `grants` and the loop outlive it.
Result<std::unique_ptr<Proxy>> MakeProxy(net::Loop& loop, const policy::ParsedGrants& grants,
                                         UpstreamTrust& trust, const std::string& upstream_ca,
                                         CaStock& authorities, WatchedStock& watched,
                                         AddressGuard guard, TrafficLog log, AccessNotifier notify,
                                         const ProxyTimes& times = {});

}  // namespace coffer::egress
