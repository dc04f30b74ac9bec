// SPDX-License-Identifier: Apache-2.0
//
// The HTTP server: listeners, connections, and the order in which they end.
//
// Everything runs on the Loop's thread, except accepting and /healthz
// (gateway/http/accept_thread.h). Opening can fail and needs privileges (ports, the socket's
// directory), so it is apart from serving: Open, drop privileges, then Loop::Run. A Server must be
// destroyed on the loop's thread or after Run has returned, before the Loop and the Service.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "gateway/http/exchange.h"
#include "gateway/service.h"
#include "net/loop.h"

namespace coffer::gateway {

struct TcpListen {
  std::string address = "127.0.0.1";  // a literal, never a name
  uint16_t port = 0;                  // 0: any
};

struct UnixListen {
  std::string path;      // replaced if a socket without a listener is there
  unsigned mode = 0600;  // 0666 leaves the decision to the peer's uid
};

// Texts, not files: the monitor reads them, because the gateway may not.
struct TlsPair {
  std::string certificate;  // PEM, the whole chain
  std::string key;          // PEM
};

struct ServerConfig {
  std::vector<TcpListen> tcp;
  std::vector<UnixListen> unix_sockets;
  std::optional<TlsPair> tls;  // for all TCP listeners
  // For probes: plain, and nothing but /healthz. Needed with TLS; without, every listener answers /healthz in time.
  std::vector<TcpListen> health;
  HttpConfig http;
};

struct ServerStats {
  size_t connections = 0;  // now
  uint64_t accepted = 0;
  uint64_t turned_away = 0;  // over a limit of connections
  uint64_t timed_out = 0;
  uint64_t requests = 0;
};

class Server {
 public:
  // Listens when it returns. Fails if an address, a path or the certificate cannot be used.
  static Result<std::unique_ptr<Server>> Open(net::Loop& loop, Service& service,
                                              ServerConfig config);
  virtual ~Server() = default;

  // The ports of config.tcp, in its order.
  virtual std::vector<uint16_t> ports() const = 0;
  virtual std::vector<uint16_t> health_ports() const = 0;  // of config.health
  virtual ServerStats stats() const = 0;

  // Accepts and answers /healthz from here on, before the loop runs too; the loop does this when it begins to turn, at
  // the latest. After privileges were dropped: the thread keeps those that it was born with, and its priority.
  virtual void StartAccepting() = 0;

  // For the handshakes and tokens that follow; connections keep what they began with. A pair that
  // cannot be used changes nothing. Only a server that was opened with TLS can replace it.
  virtual Status ReplaceTls(const TlsPair& pair) = 0;
  virtual void ReplaceJwt(std::shared_ptr<const JwtVerifier> jwt) = 0;

  // Stops listening, lets every request in progress end, closes idle connections at once; after `deadline` the rest
  // is cut. `drained` is invoked on the loop's thread.
  virtual void Drain(std::chrono::milliseconds deadline, std::function<void()> drained) = 0;
};

}  // namespace coffer::gateway
