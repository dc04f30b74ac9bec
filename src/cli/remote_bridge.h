// SPDX-License-Identifier: Apache-2.0
//
// The bridge to an MCP server at a URL: messages are lines on stdin and stdout here, and requests
// of Streamable HTTP there.
//
// `coffer mcp wrap --url` runs it inside a boundary, as it would run a server of its own, so what
// reads the remote's bytes can reach nothing but that remote. It has no TLS: the proxy of the
// boundary opens the connection, verifies the server, and judges every request (docs/EGRESS.md).
// The first line of stdin says where the server is and has the credential, so neither is among
// words or variables that others could see. What the server sends back of the credential is
// removed.
//
// A request whose exchange fails is answered with an error here, and the next one works. Nothing
// waits; not thread-safe.
#pragma once

#include <chrono>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "cli/line_stream.h"
#include "cli/remote_exchange.h"
#include "cli/remote_place.h"

namespace coffer::cli {

inline constexpr const char* kBridgeVerb = "mcp-bridge";

// How long to wait before a stream that ended is asked for again: what the server asked for, and
// twice the pause before the last time if it said nothing since. A server decides when its streams
// end, and must not decide that we ask all the time.
std::chrono::milliseconds NextPause(std::chrono::milliseconds last,
                                    std::optional<std::chrono::milliseconds> asked, bool heard);

class RemoteBridge {
 public:
  RemoteBridge(RemotePlace place, uint16_t proxy_port, LineReader& in, LineWriter& out);
  ~RemoteBridge();
  // Until stdin has ended, or the conversation cannot go on. `early`: lines that were read already.
  void Serve(const std::vector<std::string>& early);

 private:
  using Clock = std::chrono::steady_clock;
  struct Resume {
    RemoteMessage message;
    std::string last_id;
    Clock::time_point at;
  };
  void TakeLine(std::string_view line);
  void BeginWaiting();
  bool Blocked() const;
  void Begin(RemoteExchange::Kind kind, RemoteMessage message, const std::string& last_id);
  std::string Request(RemoteExchange::Kind kind, const RemoteMessage& message,
                      const std::string& last_id) const;
  void Deliver(RemoteExchange& exchange, const std::string& text);
  void DeliverOne(RemoteExchange& exchange, Json message);
  void Sweep();
  void End(RemoteExchange& exchange);
  void EndListening(const RemoteExchange& exchange);
  void CancelRequest(const Json& message);
  void Fail(const RemoteMessage& message, const std::string& why);
  void Step();
  int Timeout() const;
  void SayGoodbye();

  const RemotePlace place_;
  const RemoteSecrets secrets_;
  const uint16_t proxy_port_;
  LineReader& in_;
  LineWriter& out_;
  std::deque<RemoteMessage> waiting_;
  std::deque<Resume> resumes_;
  std::list<std::unique_ptr<RemoteExchange>> exchanges_;
  std::vector<std::unique_ptr<ProxiedConnection>> idle_;
  std::string session_, version_;
  std::optional<Clock::time_point> listen_at_;
  std::string listen_id_;
  std::chrono::milliseconds listen_delay_{0};
  bool ending_ = false;
};

// Inside the boundary. Never started by hand.
int BridgeVerb();

}  // namespace coffer::cli
