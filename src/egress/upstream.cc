// SPDX-License-Identifier: Apache-2.0
#include "egress/upstream.h"

#include <fmt/format.h>
#include <openssl/x509_vfy.h>

#include <algorithm>
#include <chrono>

#include "egress/connect.h"
#include "egress/tls_stream.h"
#include "egress/watchdog.h"
#include "net/http_head.h"
#include "policy/address_class.h"

namespace coffer::egress {
namespace {

using net::Task;
using policy::IpAddress;

constexpr std::chrono::seconds kHandshakeTime{10};

}  // namespace

int Dialed::status() const {
  switch (refusal) {
    case Refusal::kAddress:
      return 403;
    case Refusal::kLookups:
      return 429;
    case Refusal::kNone:
      break;
  }
  return 502;
}

std::string Dialed::reason() const {
  switch (refusal) {
    case Refusal::kAddress:
      return "address_denied";
    case Refusal::kLookups:
      return "limit_reached";
    case Refusal::kNone:
      break;
  }
  return "upstream_unreachable";
}

Upstream::Upstream(const net::IoExecutor& executor, const policy::ParsedGrants& grants,
                   AddressGuard guard, ServerTrust* trust)
    : executor_(executor),
      grants_(grants),
      guard_(std::move(guard)),
      trust_(trust),
      names_(executor_),
      lookups_(grants.rules),
      answered_(executor_, Clock::time_point::max()) {}

Task<std::vector<IpAddress>> Upstream::Resolve(const policy::HostName& host) {
  if (host.address()) {
    co_return std::vector<IpAddress>{*host.address()};
  }
  if (const auto fixed = grants_.resolve.find(host.text()); fixed != grants_.resolve.end()) {
    co_return fixed->second;
  }
  std::vector<IpAddress> addresses = co_await names_.Find(host.text());
  co_return addresses;
}

bool Upstream::ChargeLookup(const policy::HostAndPort& to, Dialed& dialed) {
  const std::optional<std::string> spent = lookups_.Charge(to.host);
  if (spent) {
    dialed.refusal = Dialed::Refusal::kLookups;
    dialed.problem = *spent;
    dialed.fix = policy::ConnectFix(grants_.rules, {to.host, to.port});
  }
  return !spent;
}

// As many as are dialled; or the one because of which none may be.
std::vector<IpAddress> Upstream::WorthKeeping(const policy::HostName& host,
                                              std::vector<IpAddress> found) const {
  for (const IpAddress& address : found) {
    if (guard_.Object(host, address)) {
      return {address};
    }
  }
  found.resize(std::min(found.size(), kMostDialled));
  return found;
}

Task<std::vector<IpAddress>> Upstream::ResolveChosen(const policy::HostAndPort& to,
                                                     Dialed& dialed) {
  while (lookups_.IsPending(to.host)) {
    (void)co_await answered_.async_wait(net::kAwaitTuple);
  }
  std::vector<IpAddress> addresses;
  if (const std::vector<IpAddress>* const kept = lookups_.Kept(to.host, BootTime())) {
    addresses = *kept;
    co_return addresses;
  }
  if (!ChargeLookup(to, dialed)) {
    co_return addresses;
  }
  addresses = co_await names_.Find(to.host.text());
  lookups_.Keep(to.host, WorthKeeping(to.host, addresses), BootTime());
  answered_.cancel();
  co_return addresses;
}

Task<Dialed> Upstream::Dial(const policy::HostName& host, uint16_t port) {
  Dialed dialed;
  if (const std::optional<std::string> objection = ObjectToHostName(host)) {
    dialed.refusal = Dialed::Refusal::kAddress;
    dialed.problem = fmt::format("{} is {}", host.text(), *objection);
    co_return dialed;
  }
  const policy::HostAndPort to{host, port};
  const bool chosen = lookups_.IsChosen(host);
  if (grants_.is_proxied(host)) {
    if (!chosen || lookups_.IsKnown(host) || ChargeLookup(to, dialed)) {
      lookups_.Forget(host);  // there is no answer to wait for
      dialed = co_await DialThroughProxy(to);
    }
    co_return dialed;
  }
  std::vector<IpAddress> addresses;
  if (chosen && !grants_.resolve.contains(host.text())) {
    addresses = co_await ResolveChosen(to, dialed);
  } else {
    addresses = co_await Resolve(host);
  }
  if (dialed.refusal != Dialed::Refusal::kNone) {
    co_return dialed;
  }
  for (const IpAddress& address : addresses) {
    if (const std::optional<std::string> objection = guard_.Object(host, address)) {
      dialed.refusal = Dialed::Refusal::kAddress;
      dialed.leads_to = host.address() ? "" : address.text();
      dialed.problem =
          fmt::format("{} leads to {}, which is {}", host.text(), address.text(), *objection);
      const IpAddress plain = policy::Unmapped(address);  // as the guard takes it
      const std::string range = fmt::format("{}/{}", plain.text(), plain.size() * 8);
      dialed.fix = grants_.of_tool ? fmt::format(
                                         "[egress] dangerously_addresses = [\"{}\"] in the "
                                         "configuration",
                                         range)
                                   : "--dangerously-allow-address " + range;
      co_return dialed;
    }
  }
  const bool found = !addresses.empty();
  dialed = co_await ConnectTo(to, std::move(addresses));
  if (found && dialed.stream == nullptr) {
    lookups_.DoubtAnswer(host, BootTime());
  }
  co_return dialed;
}

// One of these addresses, which the caller has looked at.
Task<Dialed> Upstream::ConnectTo(const policy::HostAndPort& to, std::vector<IpAddress> addresses) {
  Dialed dialed;
  if (addresses.empty()) {
    dialed.problem = fmt::format("{} has no address", to.host.text());
    co_return dialed;
  }
  Connected connected = co_await ConnectToOneOf(executor_, std::move(addresses), to.port);
  if (connected.stream == nullptr) {
    dialed.problem =
        fmt::format("{}:{} cannot be reached: {}", to.host.text(), to.port, connected.problem);
  }
  dialed.stream = std::move(connected.stream);
  co_return dialed;
}

// The operator named the proxy, so its own address is not judged. It finds the host's address, and
// judges that or does not.
Task<Dialed> Upstream::DialThroughProxy(const policy::HostAndPort& to) {
  const policy::HostAndPort proxy = *grants_.upstream_proxy;
  std::vector<IpAddress> addresses = co_await Resolve(proxy.host);
  Dialed dialed = co_await ConnectTo(proxy, std::move(addresses));
  if (dialed.stream == nullptr) {
    dialed.problem = fmt::format("the upstream proxy: {}", dialed.problem);
    co_return dialed;
  }
  net::Stream& stream = *dialed.stream;
  Watchdog watchdog(executor_, [&stream] { stream.Close(); });
  watchdog.Within(kHandshakeTime);
  const std::string where = to.text();
  const std::string request = fmt::format("CONNECT {} HTTP/1.1\r\nHost: {}\r\n\r\n", where, where);
  const bool sent = co_await stream.Write(request, "");
  // Byte by byte: what follows the head is the server's.
  std::string head;
  while (sent && head.size() < net::kMostHeadBytes && !head.ends_with("\r\n\r\n")) {
    char byte = 0;
    const size_t got = co_await stream.ReadSome(&byte, 1);
    if (got == 0) {
      break;
    }
    head += byte;
  }
  watchdog.Stop();
  const Result<net::HttpResponseHead> answer = net::ParseResponseHead(head, "CONNECT");
  if (!answer.ok() || answer->status != 200) {
    dialed.stream.reset();
    dialed.problem =
        answer.ok() ? fmt::format("the upstream proxy answered {} for {}", answer->status, where)
                    : fmt::format("the upstream proxy did not answer for {}", where);
  }
  co_return dialed;
}

Task<Dialed> Upstream::DialTls(const policy::HostName& host, uint16_t port) {
  Dialed dialed = co_await Dial(host, port);
  if (dialed.stream == nullptr) {
    co_return dialed;
  }
  UniqueSsl ssl = trust_ == nullptr ? nullptr : MakeTlsClient(trust_->context(), host.text());
  if (ssl == nullptr) {
    dialed.stream.reset();
    dialed.problem = "TLS cannot be set up";
    co_return dialed;
  }
  auto tls = std::make_unique<TlsStream>(std::move(dialed.stream), std::move(ssl), "");
  Watchdog watchdog(executor_, [&tls] { tls->Close(); });
  watchdog.Within(kHandshakeTime);
  const bool shaken = co_await tls->Handshake();
  watchdog.Stop();
  const long verified = ::SSL_get_verify_result(tls->ssl());
  if (!shaken || verified != X509_V_OK) {
    lookups_.DoubtAnswer(host, BootTime());
    dialed.problem = verified != X509_V_OK
                         ? fmt::format("the certificate of {}:{} is not good: {}", host.text(),
                                       port, ::X509_verify_cert_error_string(verified))
                         : fmt::format("{}:{} does not speak TLS as it should", host.text(), port);
    co_return dialed;
  }
  dialed.stream = std::move(tls);
  co_return dialed;
}

}  // namespace coffer::egress
