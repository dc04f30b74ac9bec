// SPDX-License-Identifier: Apache-2.0
//
// The four listeners of a boundary with network, in a network namespace without a boundary around it.
#pragma once

#include <netinet/in.h>

#include "egress/listeners.h"

namespace coffer::bench {

inline constexpr uint16_t kProxyPort = 3128;

sockaddr_in LoopbackAddress(uint16_t port);

// Moves this process into a network namespace of its own, with a loopback that is up. Ends the program if it cannot. Needs root.
egress::Listeners MakeNetworkListeners();

}  // namespace coffer::bench
