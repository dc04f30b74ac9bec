// SPDX-License-Identifier: Apache-2.0
//
// One request on its way to its answer: what handlers work with.
//
// By the time a handler sees it, the head was checked, the caller has one of the route's roles, the values of the path
// and the query are decoded and valid, and a JSON body is complete. An Exchange is shared between the connection and
// the replies that are still to come; a handler keeps it as long as it needs it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/http/head_checks.h"
#include "gateway/http/known_tenants.h"
#include "gateway/http/limits.h"
#include "gateway/http/mcp_flights.h"
#include "gateway/http/message.h"
#include "gateway/http/route.h"
#include "gateway/jwt.h"
#include "gateway/service.h"
#include "net/loop.h"

namespace coffer::gateway {

class McpHost;

struct HttpConfig {
  HttpLimits limits;
  SiteNames names;
  std::shared_ptr<const JwtVerifier> jwt;  // nothing: tokens are API keys only
  // Does the work of a request to /mcp; nothing: the service does (gateway/http/mcp_host.h).
  std::function<std::unique_ptr<McpHost>()> mcp_host;
  // Told of every answer: whose request it was ("" before that is known), the route's path ("" if there is none), the
  // method and the status. On the loop's thread; must not block.
  std::function<void(std::string_view tenant, std::string_view route, std::string_view method,
                     int status)>
      answered;
};

// What every handler may use. Exchanges share it: a late reply finds it, also after the server is gone.
struct Api {
  Service& service;
  net::Loop& loop;
  HttpConfig config;
  std::shared_ptr<KnownTenants> known = std::make_shared<KnownTenants>();
  std::shared_ptr<McpFlights> mcp_flights = std::make_shared<McpFlights>();
};

// The body of an upload, pulled by its handler.
class BodyReader {
 public:
  struct Piece {
    std::string bytes;
    bool end = false;
    std::optional<Problem> problem;  // too large, too slow, malformed, gone
  };
  virtual ~BodyReader() = default;
  // One at a time. Never invoked if the connection is destroyed first.
  virtual void Read(std::function<void(Piece)> reply) = 0;
};

struct Exchange {
  std::shared_ptr<const Api> api;
  Channel channel;
  Head head;
  const Route* route = nullptr;
  Values values;  // of the path
  Values query;
  Identity who;
  // Shared with the work that is done for it; `gone` is set when the client is.
  std::shared_ptr<Asker> asker = std::make_shared<Asker>();
  std::string body;
  std::shared_ptr<void> body_room;     // what the body may take, as long as this lives
  std::shared_ptr<BodyReader> reader;  // BodyKind::kStream; nothing once the client is gone
  std::shared_ptr<void> work;          // what a handler needs until the answer is sent

  // "" if there is none.
  const std::string& Value(std::string_view name) const;
  const std::string* Query(std::string_view name) const;
};

}  // namespace coffer::gateway
