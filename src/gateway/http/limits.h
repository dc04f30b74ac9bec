// SPDX-License-Identifier: Apache-2.0
//
// Every bound on what a client can make the gateway hold, read or wait for.
//
// A client is one connection; it costs at most about head + body + two pieces of a stream, and nothing is queued for it
// beyond that: a second request on the same connection stays in the kernel's buffer until the first was answered.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "gateway/http/connection_pace.h"

namespace coffer::gateway {

struct HttpLimits {
  size_t head_bytes = 16UL * 1024;
  size_t headers = 64;
  size_t target_bytes = 4096;
  size_t body_bytes = 1024UL * 1024;  // a JSON body
  uint64_t upload_bytes =
      256UL * 1024 * 1024;  // a file; the session's own quota is usually smaller
  size_t json_depth = 32;
  size_t json_values = 10'000;

  std::chrono::milliseconds head_time{10'000};       // from its first byte to its last
  std::chrono::milliseconds body_time{30'000};       // of a JSON body, from head to end
  std::chrono::milliseconds upload_time{3'600'000};  // of a file, from head to end
  std::chrono::milliseconds stall_time{15'000};      // without a byte moving, in either direction
  std::chrono::milliseconds idle_time{60'000};       // between two requests
  std::chrono::milliseconds handshake_time{10'000};  // TLS
  std::chrono::milliseconds heartbeat{15'000};       // a comment on a silent event stream

  std::chrono::milliseconds loop_stale{3'000};  // a heartbeat this old makes /healthz fail

  size_t connections = 4096;
  size_t requests_per_tenant = 256;    // in progress at once, each on its connection
  size_t connections_per_peer = 1024;  // an address (IPv6: a /64), or a uid on the unix socket
  PaceLimits pace;                     // of a peer's new connections
};

}  // namespace coffer::gateway
