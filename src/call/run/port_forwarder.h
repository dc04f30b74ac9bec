// SPDX-License-Identifier: Apache-2.0
//
// How the calls of a session reach the ports of its background processes. Network namespaces are not shared.
//
// A socket belongs to the network it was made in, so a supervisor can use sockets of its boundary's
// network without entering it (Boundary::TakePortSockets). The supervisor of a call lets one of
// them listen on each forwarded port of the call's own loopback, before the command runs, and sends
// it through the process's channel. There the forwarder, an unprivileged child of the process's
// supervisor, accepts, connects inside the process's network with one of the sockets it holds, and
// carries bytes. Its filter lets it make no socket, open no file and start nothing: it reaches that
// loopback and the listeners it was sent. The listeners of a call go when its supervisor does.
//
// `coffer run --publish` is the same with listeners of the host's loopback (published_ports.h).
//
// The gateway decides which channels a call gets, as it decides which session a call belongs to.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "call/run/published_ports.h"
#include "call/run/run_request.h"
#include "isolation/boundary.h"

namespace coffer::call {

inline constexpr size_t kMostPorts = 8;         // that one process is reached on
inline constexpr size_t kMostForwards = 16;     // ports of other processes in one call
inline constexpr size_t kMostConnections = 16;  // to one process at the same time; more wait

// How many TCP sockets of its network the supervisor needs.
uint32_t PortSocketsOf(const RunRequest& request);

// What a boundary has to do with ports, for as long as it lives.
class SessionPorts {
 public:
  SessionPorts() = default;
  SessionPorts(SessionPorts&& other) noexcept;
  SessionPorts& operator=(SessionPorts&& other) noexcept;
  ~SessionPorts();  // ends the forwarder

  // For a boundary that is ready and has not started. Those for egress are taken already. The
  // payload finds every forwarded port listening.
  static Result<SessionPorts> Open(const RunRequest& request, isolation::Boundary& boundary);

  const std::vector<RunRequest::Publish>& published() const { return published_.ports(); }

 private:
  UniqueFd life_;  // closed with us: then other processes' forwarders forget this call
  PublishedPorts published_;
  pid_t forwarder_ = -1;
};

// The forwarder's own filter. Descriptors 1 to `pool` are the sockets that connect, and they stay
// that for life: they cannot be closed, and there is no dup. Listeners and what they accept may be
// of the host's network: they can neither connect nor name a receiver.
Result<std::vector<sock_filter>> ForwarderFilter(uint64_t pool);

// In the forwarder: serves until its parent dies. `sockets` are of the process's network.
[[noreturn]] void RunForwarder(UniqueFd channel, std::vector<UniqueFd> sockets,
                               std::vector<uint16_t> ports);

// One listener on its way to a forwarder, with a pipe that ends when its call does.
struct PortOffer {
  uint32_t magic = 0x636f5060;
  uint16_t port = 0;
  uint16_t reserved = 0;
};

// Bounds what one of the forwarder's sockets holds in the kernel, which is charged to no boundary,
// and how long it waits for a server inside that accepts nothing. A listener hands the bounds on to
// what it accepts.
Status BoundSocket(int socket);

// Sends `listener` and `life` for the port inside. Fails if the forwarder's end is closed or full.
Status SendPortOffer(int channel, uint16_t port, int listener, int life);

}  // namespace coffer::call
