// SPDX-License-Identifier: Apache-2.0
//
// What a call may reach: rules that allow, and the judgement of one connection or request by all of them.
//
// Rules have no order. Without a rule that allows it, nothing passes; a rule with `deny` wins over every other. A rule
// with `ask` allows nothing until a person has agreed, for one host and port (egress/access_requests.h). Rules
// speak of names only: which addresses a name may lead to is egress/address_guard.h's to say, at the time of the
// connection. Judging is pure and takes values that were parsed once (HostName, UrlPath).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/host_name.h"
#include "policy/rate.h"
#include "policy/url_path.h"

namespace coffer::policy {

// Ports of one rule, from the first to the last; a single port is both.
struct PortRange {
  uint16_t first = 443;
  uint16_t last = 443;
  bool Contains(uint16_t port) const { return first <= port && port <= last; }
  bool operator==(const PortRange&) const = default;
};

// What is inside a connection, and how far we look into it.
enum class TlsMode : uint8_t {
  kSplice,     // TLS end to end; the server name of its first message must be the host
  kIntercept,  // TLS with a certificate of ours; every request inside is judged
  kPlain,      // HTTP without TLS; every request is judged
  kNone,       // any TCP protocol; only host and port are known
};
std::string_view TlsModeName(TlsMode mode);  // "splice", "intercept", "plain", "none"

struct EgressRule {
  HostPattern host;
  std::vector<PortRange> ports = {{443, 443}};
  TlsMode tls = TlsMode::kSplice;
  std::vector<std::string> methods;  // empty: every method; only with kIntercept and kPlain
  std::vector<std::string> paths;    // empty: every path; patterns as UrlPath::Matches has them
  std::optional<RateRule> rate;      // of connections when spliced, of requests otherwise
  uint64_t bytes_out = 0;            // of one call, to this rule's hosts; 0: no limit of its own
  uint64_t bytes_in = 0;
  uint64_t connections = 0;  // or requests, at the same time; 0: no limit of its own
  Nanos time{0};             // that one of them may last; 0: no limit of its own
  bool ask = false;          // opens nothing by itself: what it covers may be asked for
  bool deny = false;         // of hosts and ports; methods and paths do not narrow it
  bool of_tool = false;      // of a declared tool: a refusal names its manifest, not a flag

  // How --allow would write it, for receipts: "api.example.com:443", "GET,HEAD https://api.example.com/v1/**".
  std::string text() const;
  bool operator==(const EgressRule&) const = default;
};

// The value of --allow:
//   HOST[:PORT]                      TLS on port 443, spliced; port 22 is SSH, so there it is tcp
//   [METHOD[,METHOD]] https://HOST[:PORT][/PATH]   intercepted if it names methods or paths other than /**
//   [METHOD[,METHOD]] http://HOST[:PORT][/PATH]    without TLS, port 80
//   tcp://HOST:PORT                  any protocol
// HOST is a name, *.d, **.d or an address. Patterns over whole top-level domains or domains that strangers share are
// refused.
Result<EgressRule> ParseAllow(std::string_view text);

// A connection that is asked for, before anything was seen of what goes through it.
struct EgressConnect {
  HostName host;
  uint16_t port = 0;
};
// One HTTP request, of a proxy client or inside an intercepted connection.
struct EgressRequest {
  HostName host;
  uint16_t port = 0;
  bool tls = true;
  std::string method;
  UrlPath path;
};

struct EgressVerdict {
  const EgressRule* rule = nullptr;  // the one that allows it; nothing: denied
  std::string
      reason;  // "host_not_allowed", "host_denied", "port_not_allowed", "tls_required", "method_not_allowed", ...
  std::string message;  // one line for a person
  // What would allow it: the flag ("--allow api.example.com"), or the rule in a manifest; empty if nothing would.
  std::string fix;
  const EgressRule* asks = nullptr;  // denied, but a person may be asked for this rule

  bool allowed() const { return rule != nullptr; }
};

// With several rules that allow a connection, the widest mode counts: none, splice, intercept, plain. A connection with
// the last two is only opened to be looked into: each request is judged by itself, with `tls` as it turns out to be.
EgressVerdict Judge(std::span<const EgressRule> rules, const EgressConnect& connect);
EgressVerdict Judge(std::span<const EgressRule> rules, const EgressRequest& request);

// What would allow TLS to that host and port: the flag, or the rule in a manifest.
std::string ConnectFix(std::span<const EgressRule> rules, const EgressConnect& connect);

}  // namespace coffer::policy
