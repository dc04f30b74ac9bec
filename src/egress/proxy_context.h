// SPDX-License-Identifier: Apache-2.0
//
// What every connection of one boundary's proxy shares, and the limits that hold for each.
#pragma once

#include <chrono>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "egress/access_requests.h"
#include "egress/proxy.h"
#include "egress/resolver.h"
#include "egress/rule_meter.h"
#include "egress/traffic.h"
#include "egress/upstream.h"
#include "egress/watched_values.h"
#include "net/splice_pipe.h"
#include "policy/egress_grants.h"

namespace coffer::egress {

class BoundaryCa;
class OpenTraffic;

inline constexpr size_t kMostProxyConnections = 64;   // at once; further ones wait to be accepted
inline constexpr size_t kMostPipes = 16;              // at once; further directions are copied
inline constexpr std::chrono::seconds kHeadTime{10};  // for a whole head, hello or SOCKS greeting
inline constexpr std::chrono::seconds kBetweenTime{60};  // from one request to the next

struct ProxyContext {
  const ProxyTimes times;
  net::IoExecutor executor;
  const policy::ParsedGrants& grants;
  Upstream& upstream;
  Resolver& resolver;
  RuleMeters& meters;
  AccessRequests& access;
  BoundaryCa* ca;                // null if no rule intercepts
  const WatchedValues* watched;  // null if there are no values that must never leave
  TrafficLog log;
  std::set<OpenTraffic*>& open;  // what is going on
  net::PipeAllowance& pipes;
};

// Traffic that is going on. Written down once: by Close, or at the latest when it is dropped.
class OpenTraffic {
 public:
  OpenTraffic(const ProxyContext& context, Traffic traffic)
      : context_(context), traffic_(std::move(traffic)), began_(BootTime()) {
    context_.open.insert(this);
  }
  OpenTraffic(const OpenTraffic&) = delete;
  OpenTraffic& operator=(const OpenTraffic&) = delete;
  ~OpenTraffic() { Close(); }

  Traffic& traffic() { return traffic_; }
  void Allow(std::string rule) {
    traffic_.allowed = true;
    traffic_.rule = std::move(rule);
    traffic_.reason = traffic_.fix = "";
  }
  void Fail(std::string reason) { traffic_.reason = std::move(reason); }
  void Deny(std::string reason, std::string fix) {
    traffic_.allowed = false;
    traffic_.rule.clear();
    traffic_.reason = std::move(reason);
    traffic_.fix = std::move(fix);
  }
  // It holds the value of that line of the file.
  void DenyValue(size_t line);
  // What is inside is written down instead.
  void Forget() {
    closed_ = true;
    context_.open.erase(this);
  }
  void Close() {
    if (!closed_) {
      Forget();
      traffic_.millis = static_cast<uint64_t>(
          std::chrono::duration_cast<std::chrono::milliseconds>(BootTime() - began_).count());
      context_.log(traffic_);
    }
  }

 private:
  const ProxyContext& context_;
  Traffic traffic_;
  Nanos began_;
  bool closed_ = false;
};

// Of connections that were granted for a time.
inline constexpr const char* kAccessEnded = "the time that access was granted for is over";
// The flag or rule that would let bytes other than TLS or HTTP through.
std::string AnyBytesFix(bool of_tool, const Traffic& to);
// Of connections that sent something and ended, or did not go on in time, before a request could be read.
inline constexpr const char* kNoHead =
    "no request came: the client sent no whole head of HTTP, which ends with an empty line "
    "(CR LF)";
// What a program inside is told: a status and a JSON body with one line for a person. The connection ends after it.
std::string RefusalAnswer(int status, std::string_view code, std::string_view message,
                          std::string_view fix);

}  // namespace coffer::egress
