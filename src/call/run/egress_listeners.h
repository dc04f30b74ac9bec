// SPDX-License-Identifier: Apache-2.0
//
// Where the network of a boundary with --allow listens: the proxy on its loopback, and for programs
// that know of no proxy a resolver and the addresses it answers with (isolation/name_redirect.h).
//
// The second part needs more of the kernel than the first. Without it the call runs with the proxy alone, and says so.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "egress/listeners.h"
#include "isolation/boundary.h"
#include "isolation/name_datagrams.h"

namespace coffer::call {

// The port on the boundary's loopback where the proxy is.
inline constexpr uint16_t kEgressPort = 3128;
// TCP sockets that the listeners take (BoundaryPlan::port_sockets).
inline constexpr uint32_t kEgressSockets = 2;

struct EgressListeners {
  egress::Listeners sockets;
  std::string not_transparent;  // why there is no resolver and no redirect; empty: there are
  std::string ipv4_only;        // why there is no redirect of IPv6; empty: there is, or none at all
  isolation::NameDatagrams datagrams;  // to the addresses that are answered
};

// For a boundary that is admitted and has not started: beside its init, which has most of its way
// still before it. Nothing connects before the boundary starts. Takes kEgressSockets of its TCP
// sockets. Fails too if init gave up; AwaitReady then says why.
Result<EgressListeners> ListenForEgress(isolation::Boundary& boundary);

// Binds to `port` of the boundary's loopback and listens.
Status ListenInside(int socket, uint16_t port);

}  // namespace coffer::call
