// SPDX-License-Identifier: Apache-2.0
//
// The table of routes: method, path, allowed roles, kind of body, handler.
//
// RouteAccess is a type without a default, so a route without it does not compile. Matching is exact, segment by
// segment, on the path as it was sent: nothing is normalised, so no two spellings of a path mean different things to us
// and to a proxy. Values taken from a path are decoded and checked against the alphabet of their kind before a handler
// sees them.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gateway/http/message.h"
#include "gateway/service.h"

namespace coffer::gateway {

struct Exchange;

// The clients that may use a route: every client without a credential, or identities with one of some roles.
class RouteAccess {
 public:
  static constexpr RouteAccess Public() { return RouteAccess(0); }
  template <typename... Roles>
  static constexpr RouteAccess Of(Role first, Roles... more) {
    return RouteAccess(static_cast<uint8_t>((Bit(first) | ... | Bit(more))));
  }
  constexpr bool is_public() const { return roles_ == 0; }
  constexpr bool Allows(Role role) const { return (roles_ & Bit(role)) != 0; }
  std::string Names() const;  // "agent, operator"

 private:
  static constexpr uint8_t Bit(Role role) {
    return static_cast<uint8_t>(1U << static_cast<unsigned>(role));
  }
  explicit constexpr RouteAccess(uint8_t roles) : roles_(roles) {}
  uint8_t roles_;
};

enum class BodyKind {
  kNone,          // a request with a body is refused
  kJson,          // read whole, up to the limit
  kOptionalJson,  // the same, or none
  kStream,        // the handler pulls it
};

using Respond = std::function<void(Response)>;
using Handler = void (*)(const std::shared_ptr<Exchange>& exchange, Respond respond);

struct Route {
  Method method;
  std::string_view path;  // "/v1/calls/{call_id}/files/{path*}": a star takes the rest
  RouteAccess access;
  BodyKind body;
  Handler handler;
  std::string_view query = {};  // names of the parameters it takes: "limit,cursor"
};

std::span<const Route> Routes();

using Values = std::vector<std::pair<std::string_view, std::string>>;

struct Match {
  const Route* route = nullptr;  // nothing: no such path, or no such method if `allow` is not empty
  Values raw;                    // what the placeholders stand for, as sent
  std::string allow;             // "GET, HEAD, POST"
};
Match FindRoute(std::span<const Route> routes, Method method, std::string_view path);

// Decoded and checked, or what is wrong with them.
Answer<Values> CheckValues(const Values& raw);
// "limit=5&cursor=x": only names of `known` (comma-separated), each once.
Answer<Values> ParseQuery(std::string_view query, std::string_view known);

}  // namespace coffer::gateway
