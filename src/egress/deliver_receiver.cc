// SPDX-License-Identifier: Apache-2.0
#include "egress/deliver_receiver.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/ascii.h"
#include "base/hash.h"
#include "base/text.h"
#include "policy/address_class.h"

namespace coffer::egress {
namespace {

using policy::AddressClass;
using policy::IpAddress;

constexpr size_t kLongestUrl = 2048;
constexpr std::string_view kTracesPath = "/v1/traces";

Error BadUrl(std::string_view what, std::string_view why) {
  return Refused("policy.config", fmt::format("the URL of {} {}", what, why),
                 "write https://HOST[:PORT]/PATH, or http:// for this host");
}

bool IsLoopback(const std::string& host) {
  in_addr v4{};
  in6_addr v6{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    return (ntohl(v4.s_addr) >> 24) == 127;
  }
  if (::inet_pton(AF_INET6, host.c_str(), &v6) == 1) {
    return IN6_IS_ADDR_LOOPBACK(&v6);
  }
  return host == "localhost";
}

// Visible ASCII: nothing that could end a line of a request.
bool IsPlain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

bool IsHostName(std::string_view host) {
  return !host.empty() && host.size() <= 253 &&
         host.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") ==
             std::string_view::npos;
}

Result<Receiver> ReadUrl(const std::string& url, std::string_view what) {
  Receiver made;
  std::string_view rest = url;
  if (url.size() > kLongestUrl || !IsPlain(url) || url.find('#') != std::string::npos) {
    return BadUrl(what, "is too long or has characters that a URL cannot have");
  }
  made.tls = rest.starts_with("https://");
  if (!made.tls && !rest.starts_with("http://")) {
    return BadUrl(what, "is neither https:// nor http://");
  }
  rest.remove_prefix(made.tls ? 8 : 7);
  const size_t end = std::min(rest.find_first_of("/?"), rest.size());
  std::string_view authority = rest.substr(0, end);
  made.target = rest.substr(end);
  if (!made.target.starts_with('/')) {
    made.target.insert(0, "/");
  }
  if (authority.find('@') != std::string_view::npos) {
    return BadUrl(what, "holds a name or a password");
  }
  std::string_view port;
  if (authority.starts_with('[')) {
    const size_t close = authority.find(']');
    if (close == std::string_view::npos) {
      return BadUrl(what, "has no host");
    }
    made.host = authority.substr(1, close - 1);
    port = authority.substr(close + 1);
    in6_addr address{};
    if (::inet_pton(AF_INET6, made.host.c_str(), &address) != 1) {
      return BadUrl(what, "has no address between its brackets");
    }
  } else {
    const size_t colon = std::min(authority.find(':'), authority.size());
    made.host = authority.substr(0, colon);
    port = authority.substr(colon);
    if (!IsHostName(made.host)) {
      return BadUrl(what, "has no host");
    }
  }
  made.port = made.tls ? 443 : 80;
  if (!port.empty()) {
    port.remove_prefix(1);
    const auto [last, error] = std::from_chars(port.data(), port.data() + port.size(), made.port);
    if (error != std::errc() || last != port.data() + port.size() || made.port == 0) {
      return BadUrl(what, "has an invalid port");
    }
  }
  made.this_host = IsLoopback(made.host);
  return made;
}

// Where the kernel, a cloud or a gateway decides who answers: writing the address is not enough.
bool NeedsRange(AddressClass kind) {
  return kind == AddressClass::kLinkLocal || kind == AddressClass::kMetadata ||
         kind == AddressClass::kTranslated;
}

// What can be said before anything is looked up.
Status CheckHost(const Receiver& receiver, const AddressGuard& guard, std::string_view what) {
  std::string name = receiver.host;
  std::transform(name.begin(), name.end(), name.begin(), LowerCase);
  if (name.ends_with('.')) {
    name.pop_back();
  }
  if (policy::IsMetadataName(name)) {
    return BadUrl(what, "names the metadata service of a cloud");
  }
  const std::optional<IpAddress> address = IpAddress::Parse(receiver.host);
  if (!address || MayDial(receiver, guard, *address)) {
    return {};
  }
  const IpAddress plain = policy::Unmapped(*address);
  const std::optional<policy::AddressBlock> block = policy::BlockOf(plain);
  const bool opens = block && NeedsRange(block->kind);
  return Refused("policy.config",
                 fmt::format("the URL of {} leads to {}, which is {}", what, address->text(),
                             block ? block->name : "an address that may not be dialled"),
                 opens ? fmt::format("if it is meant, write dangerously_addresses = [\"{}/{}\"] in "
                                     "[egress]",
                                     plain.text(), plain.size() * 8)
                       : "name a host that can be reached");
}

}  // namespace

std::string Receiver::shown() const {
  const bool v6 = host.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}", tls ? "https" : "http", v6 ? "[" : "", host, v6 ? "]" : "",
                     port);
}

bool Receiver::Wants(std::string_view event) const { return Known().Wants(event); }

store::KnownReceiver Receiver::Known() const {
  // A trace is made of calls.
  return {name, kind == Kind::kOtlp ? std::vector<std::string>{"call.*"} : events};
}

bool MayDial(const Receiver& receiver, const AddressGuard& guard, const IpAddress& address) {
  const std::optional<policy::AddressBlock> block = policy::BlockOf(policy::Unmapped(address));
  if (block && (block->kind == AddressClass::kUnspecified ||
                block->kind == AddressClass::kMulticast || block->range.text() == "240.0.0.0/4")) {
    return false;
  }
  const bool written = IpAddress::Parse(receiver.host).has_value();
  if (written && !(block && NeedsRange(block->kind))) {
    return true;
  }
  if (block && block->kind == AddressClass::kLoopback) {
    return receiver.this_host;
  }
  return !guard.Object(policy::HostName(), address);
}

Result<std::vector<Receiver>> ReceiversOf(std::span<const WebhookConfig> webhooks,
                                          const OtlpConfig& otlp, const AddressGuard& guard) {
  std::vector<Receiver> receivers;
  for (size_t i = 0; i < webhooks.size(); ++i) {
    const WebhookConfig& hook = webhooks[i];
    const std::string what = fmt::format("webhook {}", i + 1);
    TRY_ASSIGN(Receiver made, ReadUrl(hook.url, what));
    if (!made.tls && !made.this_host) {
      return BadUrl(what, "is http:// to another host");
    }
    TRY(CheckHost(made, guard, what));
    made.name = "webhook-" + HashOf(hook.url).substr(7, 16);
    made.file = hook.secret_file;
    made.events = hook.events;
    for (const Receiver& other : receivers) {
      if (other.name == made.name) {
        return BadUrl(what, "is there twice");
      }
    }
    receivers.push_back(std::move(made));
  }
  if (!otlp.endpoint.empty()) {
    TRY_ASSIGN(Receiver made, ReadUrl(otlp.endpoint, "otlp"));
    if (!made.tls && !made.this_host && !otlp.headers_file.empty()) {
      return BadUrl("otlp", "is http:// to another host, and its headers may hold a secret");
    }
    TRY(CheckHost(made, guard, "otlp"));
    made.kind = Receiver::Kind::kOtlp;
    made.name = "otlp-" + HashOf(otlp.endpoint).substr(7, 16);
    made.file = otlp.headers_file;
    if (made.target == "/") {
      made.target = kTracesPath;
    }
    receivers.push_back(std::move(made));
  }
  return receivers;
}

std::vector<std::string> NamesOfWanting(std::span<const Receiver> receivers,
                                        std::string_view event) {
  std::vector<std::string> names;
  for (const Receiver& receiver : receivers) {
    if (receiver.Wants(event)) {
      names.push_back(receiver.name);
    }
  }
  return names;
}

}  // namespace coffer::egress
