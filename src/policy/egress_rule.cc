// SPDX-License-Identifier: Apache-2.0
#include "policy/egress_rule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

#include "base/text.h"
#include "policy/address_class.h"

namespace coffer::policy {
namespace {

bool HasPort(const EgressRule& rule, uint16_t port) {
  return std::any_of(rule.ports.begin(), rule.ports.end(),
                     [&](const PortRange& range) { return range.Contains(port); });
}

bool HasMethod(const EgressRule& rule, std::string_view method) {
  return rule.methods.empty() ||
         std::find(rule.methods.begin(), rule.methods.end(), method) != rule.methods.end();
}

bool HasPath(const EgressRule& rule, const UrlPath& path) {
  return rule.paths.empty() ||
         std::any_of(rule.paths.begin(), rule.paths.end(),
                     [&](const std::string& pattern) { return path.Matches(pattern); });
}

// Whether requests with or without TLS are this rule's. A spliced connection is TLS with anything inside, and a rule
// for any protocol is also one for these.
bool HasScheme(const EgressRule& rule, bool tls) {
  return rule.tls == TlsMode::kNone || (rule.tls == TlsMode::kPlain) != tls;
}

// How often in a day a rule lets through. None is the most; of two that come to the same, the longer window lets more
// through at once.
std::tuple<bool, uint64_t, Nanos> RateRank(const std::optional<RateRule>& rate) {
  if (!rate) {
    return {true, 0, Nanos(0)};
  }
  const Nanos window = std::max(rate->window, Nanos(1));
  return {false, rate->count * static_cast<uint64_t>(std::chrono::hours(24) / window), window};
}

// Which of two rules that allow the same is the one that counts, whatever their order: the wider one. Only equal rules
// are not ordered.
bool IsWider(const EgressRule& a, const EgressRule& b) {
  const auto mode = [](TlsMode tls) {
    switch (tls) {
      case TlsMode::kNone:
        return 3;
      case TlsMode::kSplice:
        return 2;
      case TlsMode::kIntercept:
        return 1;
      case TlsMode::kPlain:
        break;
    }
    return 0;
  };
  // 0 is no limit: as an unsigned number, one less is the largest.
  const auto rank = [&](const EgressRule& rule) {
    return std::tuple(mode(rule.tls), rule.bytes_out - 1, rule.bytes_in - 1, rule.connections - 1,
                      static_cast<uint64_t>(rule.time.count()) - 1, RateRank(rule.rate));
  };
  const auto left = rank(a);
  const auto right = rank(b);
  if (left != right) {
    return left > right;
  }
  // The text does not show all of them.
  const auto rest = [](const EgressRule& rule) {
    return std::tuple(rule.text(), rule.methods, rule.paths, rule.of_tool);
  };
  return rest(a) < rest(b);
}

std::string DefaultPortText(const HostName& host, uint16_t port, uint16_t usual) {
  return HostAndPort{host, port == usual ? uint16_t{0} : port}.text();
}

// The longest pattern for `path` that can be written in a rule without escapes.
std::string PatternFor(const UrlPath& path) {
  const std::string& text = path.text();
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-._~/@:+,=").find(c) != std::string_view::npos;
  };
  const auto bad = std::find_if_not(text.begin(), text.end(), plain);
  if (bad == text.end() && text.size() <= 200) {
    return text;
  }
  const size_t length = std::min<size_t>(static_cast<size_t>(bad - text.begin()), 200);
  return text.substr(0, text.rfind('/', length) + 1) + "**";
}

// Where the rule is to be written: on the command line, or in the manifest of the tool.
bool InManifest(std::span<const EgressRule> rules) {
  return std::any_of(rules.begin(), rules.end(),
                     [](const EgressRule& rule) { return rule.of_tool; });
}

std::string PortsKey(uint16_t port, uint16_t usual) {
  return port == usual ? "" : fmt::format(", ports = [{}]", port);
}

// What the guard refuses whatever is written (egress/address_guard.h), and of addresses what no manifest can name.
bool NothingOpens(std::span<const EgressRule> rules, const HostName& host) {
  if (!host.address()) {
    return IsLocalName(host.text()) || IsMetadataName(host.text());
  }
  const std::optional<AddressBlock> block = BlockOf(Unmapped(*host.address()));
  if (!block) {
    return false;
  }
  const AddressClass kind = block->kind;
  return kind == AddressClass::kUnspecified || kind == AddressClass::kMulticast ||
         (InManifest(rules) && kind != AddressClass::kPrivate && kind != AddressClass::kShared);
}

// An address is also refused behind a rule that names it. This opens it.
std::string AddressFix(std::span<const EgressRule> rules, const HostName& host) {
  if (!host.address()) {
    return "";
  }
  const IpAddress plain = Unmapped(*host.address());
  const std::string range = fmt::format("{}/{}", plain.text(), plain.size() * 8);
  return InManifest(rules)
             ? fmt::format(", and [egress] dangerously_addresses = [\"{}\"] in the configuration",
                           range)
             : " --dangerously-allow-address " + range;
}

std::string HostKey(const HostName& host) {
  return fmt::format("[[network.allow]] {} = \"{}\"", host.address() ? "dangerously_host" : "host",
                     host.text());
}

std::string FixFor(std::span<const EgressRule> rules, const EgressConnect& connect) {
  if (NothingOpens(rules, connect.host)) {
    return "";
  }
  const std::string fix = InManifest(rules)
                              ? fmt::format("{}{}, tls = \"splice\"", HostKey(connect.host),
                                            PortsKey(connect.port, 443))
                              : "--allow " + DefaultPortText(connect.host, connect.port, 443);
  return fix + AddressFix(rules, connect.host);
}

std::string FixFor(std::span<const EgressRule> rules, const EgressRequest& request) {
  if (NothingOpens(rules, request.host)) {
    return "";
  }
  const uint16_t usual = request.tls ? 443 : 80;
  const std::string fix =
      InManifest(rules)
          ? fmt::format("{}{}{}, methods = [\"{}\"], paths = [\"{}\"]", HostKey(request.host),
                        PortsKey(request.port, usual), request.tls ? "" : ", tls = \"plain\"",
                        request.method, PatternFor(request.path))
          : fmt::format("--allow '{} {}://{}{}'", request.method, request.tls ? "https" : "http",
                        DefaultPortText(request.host, request.port, usual),
                        PatternFor(request.path));
  return fix + AddressFix(rules, request.host);
}

EgressVerdict Denied(std::string_view reason, std::string message, std::string fix) {
  EgressVerdict verdict;
  verdict.reason = reason;
  verdict.message = std::move(message);
  verdict.fix = std::move(fix);
  return verdict;
}

// How far the best rule came before it said no; later is nearer.
enum class Miss : uint8_t { kHost, kPort, kScheme, kMethod, kPath, kNone };

Miss MissOf(const EgressRule& rule, const EgressConnect& connect) {
  if (!rule.host.Covers(connect.host)) {
    return Miss::kHost;
  }
  return HasPort(rule, connect.port) ? Miss::kNone : Miss::kPort;
}

Miss MissOf(const EgressRule& rule, const EgressRequest& request) {
  if (const Miss miss = MissOf(rule, EgressConnect{request.host, request.port});
      miss != Miss::kNone) {
    return miss;
  }
  if (!HasScheme(rule, request.tls)) {
    return Miss::kScheme;
  }
  if (!HasMethod(rule, request.method)) {
    return Miss::kMethod;
  }
  return HasPath(rule, request.path) ? Miss::kNone : Miss::kPath;
}

template <typename Asked>
EgressVerdict JudgeBy(std::span<const EgressRule> rules, const Asked& asked, auto explain) {
  EgressVerdict verdict;
  Miss nearest = Miss::kHost;
  for (const EgressRule& rule : rules) {
    if (rule.deny) {
      if (MissOf(rule, EgressConnect{asked.host, asked.port}) == Miss::kNone) {
        return Denied("host_denied", fmt::format("a rule denies {}", rule.text()), "");
      }
      continue;
    }
    const Miss miss = MissOf(rule, asked);
    if (miss != Miss::kNone) {
      nearest = std::max(nearest, miss);
      continue;
    }
    const EgressRule*& best = rule.ask ? verdict.asks : verdict.rule;
    if (best == nullptr || IsWider(rule, *best)) {
      best = &rule;
    }
  }
  if (verdict.allowed()) {
    verdict.asks = nullptr;
    return verdict;
  }
  EgressVerdict denied = explain(nearest);
  denied.asks = verdict.asks;
  return denied;
}

}  // namespace

std::string_view TlsModeName(TlsMode mode) {
  switch (mode) {
    case TlsMode::kSplice:
      return "splice";
    case TlsMode::kIntercept:
      return "intercept";
    case TlsMode::kPlain:
      return "plain";
    case TlsMode::kNone:
      break;
  }
  return "none";
}

std::string EgressRule::text() const {
  std::string where = host.domain().address() ? HostAndPort{host.domain(), 0}.text() : host.text();
  const uint16_t usual = tls == TlsMode::kPlain ? 80 : 443;
  std::vector<std::string> numbers;
  for (const PortRange& range : ports) {
    numbers.push_back(range.first == range.last ? fmt::to_string(range.first)
                                                : fmt::format("{}-{}", range.first, range.last));
  }
  const std::string port = fmt::format("{}", fmt::join(numbers, ","));
  if (tls == TlsMode::kSplice) {
    return fmt::format("{}:{}", where, port);
  }
  if (tls == TlsMode::kNone) {
    return fmt::format("tcp://{}:{}", where, port);
  }
  if (port != fmt::to_string(usual)) {
    where += ":" + port;
  }
  return fmt::format("{}{}{}://{}{}", fmt::join(methods, ","), methods.empty() ? "" : " ",
                     tls == TlsMode::kPlain ? "http" : "https", where,
                     paths.empty() ? "/**" : fmt::format("{}", fmt::join(paths, ",")));
}

std::string ConnectFix(std::span<const EgressRule> rules, const EgressConnect& connect) {
  return FixFor(rules, connect);
}

EgressVerdict Judge(std::span<const EgressRule> rules, const EgressConnect& connect) {
  return JudgeBy(rules, connect, [&](Miss nearest) {
    const std::string shown = HostAndPort{connect.host, connect.port}.text();
    return Denied(nearest == Miss::kHost ? "host_not_allowed" : "port_not_allowed",
                  nearest == Miss::kHost ? fmt::format("no rule allows {}", shown)
                                         : fmt::format("the rules for {} do not allow port {}",
                                                       connect.host.text(), connect.port),
                  FixFor(rules, connect));
  });
}

EgressVerdict Judge(std::span<const EgressRule> rules, const EgressRequest& request) {
  return JudgeBy(rules, request, [&](Miss nearest) {
    const std::string& host = request.host.text();
    const std::string fix = FixFor(rules, request);
    switch (nearest) {
      case Miss::kHost:
      case Miss::kNone:
        break;
      case Miss::kPort:
        return Denied("port_not_allowed",
                      fmt::format("the rules for {} do not allow port {}", host, request.port),
                      fix);
      case Miss::kScheme:
        return request.tls
                   ? Denied("plain_only",
                            fmt::format("the rule for {} is for HTTP without TLS", host), fix)
                   : Denied("tls_required", fmt::format("{} is allowed with TLS only", host), fix);
      case Miss::kMethod:
        return Denied("method_not_allowed",
                      fmt::format("{} at {} is not allowed", Printable(request.method), host), fix);
      case Miss::kPath:
        return Denied("path_not_allowed",
                      fmt::format("{} at {} is not allowed", Printable(request.path.text()), host),
                      fix);
    }
    return Denied("host_not_allowed", fmt::format("no rule allows {}", host), fix);
  });
}

}  // namespace coffer::policy
