// SPDX-License-Identifier: Apache-2.0
//
// Which hosts may be named in [[network.allow]]. Names are judged by their text alone: a wildcard over a domain where
// strangers get names is as good as the whole internet. Which domains those are is the public suffix list's to say
// (libpsl, as Debian built it in). The address a name resolves to is the egress proxy's business, at the time of the connection.
#include <fmt/format.h>
#include <libpsl.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "base/text.h"
#include "policy/manifest/rules.h"

namespace coffer::policy {
namespace {

constexpr std::string_view kDangerHint =
    "name the host the tool needs; if it truly needs this, write dangerously_host instead of host, "
    "with a reason";

// Domains below which strangers get names or addresses, and that the public suffix list does not have.
constexpr std::string_view kUnlistedSharedDomains[] = {
    "amazonaws.com", "core.windows.net", "nip.io", "sslip.io", "windows.net",
};

// Whether strangers can have a name below `name`, which is lower case and ASCII.
bool IsSharedDomain(const std::string& name) {
  return psl_is_public_suffix(psl_builtin(), name.c_str()) != 0 ||
         std::find(std::begin(kUnlistedSharedDomains), std::end(kUnlistedSharedDomains), name) !=
             std::end(kUnlistedSharedDomains);
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find(separator, start), text.size());
    parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

bool IsLabel(std::string_view label) {
  return !label.empty() && label.size() <= 63 && label.front() != '-' && label.back() != '-' &&
         std::all_of(label.begin(), label.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
         });
}

std::optional<std::array<uint8_t, 4>> ParseIpv4(std::string_view host) {
  const std::vector<std::string_view> parts = Split(host, '.');
  if (parts.size() != 4) {
    return std::nullopt;
  }
  std::array<uint8_t, 4> address{};
  for (size_t i = 0; i < 4; ++i) {
    const char* end = parts[i].data() + parts[i].size();
    const auto [rest, problem] = std::from_chars(parts[i].data(), end, address[i]);
    if (problem != std::errc() || rest != end || (parts[i].size() > 1 && parts[i][0] == '0')) {
      return std::nullopt;
    }
  }
  return address;
}

// RFC 6890: addresses that do not belong to a host on the internet.
std::optional<Objection> ObjectToIpv4(std::string_view host, std::array<uint8_t, 4> a) {
  const auto never = [&](std::string_view what) {
    return Objection{fmt::format("{} is {}, which no tool may reach", host, what),
                     "name a host outside", true};
  };
  if (a[0] == 127 || a[0] == 0) {
    return never("the host itself");
  }
  if (a[0] == 169 && a[1] == 254) {
    return never("link-local: the metadata service of clouds lives there");
  }
  if (a[0] >= 224) {
    return never("multicast, broadcast or reserved");
  }
  const bool is_private = a[0] == 10 || (a[0] == 172 && a[1] >= 16 && a[1] < 32) ||
                          (a[0] == 192 && a[1] == 168) ||
                          (a[0] == 100 && a[1] >= 64 && a[1] < 128) ||
                          (a[0] == 198 && (a[1] == 18 || a[1] == 19)) || (a[0] == 192 && a[1] == 0);
  if (is_private) {
    return Objection{fmt::format("{} is an address of a private network", host),
                     std::string(kDangerHint)};
  }
  return Objection{
      fmt::format("{} is a bare address: nothing proves who answers there", host),
      "name the host, so that its certificate can be checked; or write dangerously_host "
      "with a reason"};
}

std::optional<Objection> ObjectToName(std::string_view host, std::string_view name, bool wildcard) {
  const std::vector<std::string_view> labels = Split(name, '.');
  if (name.size() > 253 || !std::all_of(labels.begin(), labels.end(), IsLabel)) {
    return Objection{
        fmt::format("\"{}\" is not a host name", Printable(host)),
        "write it in lower case, without scheme, port or final dot, and foreign letters as "
        "xn--; *.d means subdomains, **.d subdomains and d itself",
        true};
  }
  if (name == "localhost" || name.ends_with(".localhost")) {
    return Objection{"localhost is the host itself, which no tool may reach", "name a host outside",
                     true};
  }
  if (std::all_of(labels.back().begin(), labels.back().end(),
                  [](char c) { return c >= '0' && c <= '9'; })) {
    return Objection{fmt::format("\"{}\" is neither a name nor an address", Printable(host)),
                     "write an address as four numbers from 0 to 255", true};
  }
  if (labels.size() == 1) {
    return Objection{
        wildcard ? fmt::format("{} covers a whole top-level domain", host)
                 : fmt::format("{} has one label: what it means depends on the network", host),
        std::string(kDangerHint)};
  }
  if (wildcard && IsSharedDomain(std::string(name))) {
    return Objection{fmt::format("{}: strangers can have a name below {}", host, name),
                     std::string(kDangerHint)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Objection> ObjectToHost(std::string_view host) {
  if (host == "*" || host == "**" || host == "*.*") {
    return Objection{fmt::format("\"{}\" is every host", host),
                     "name the hosts; if it must be all, write dangerously_allow_any_host = true, "
                     "with a reason",
                     true};
  }
  if (host.find(':') != std::string_view::npos && host.find("//") == std::string_view::npos &&
      std::count(host.begin(), host.end(), ':') > 1) {
    return Objection{fmt::format("\"{}\" is an IPv6 address", Printable(host)),
                     "name the host, so that its certificate can be checked", true};
  }
  if (const auto address = ParseIpv4(host)) {
    return ObjectToIpv4(host, *address);
  }
  if (host.starts_with("**.")) {
    return ObjectToName(host, host.substr(3), /*wildcard=*/true);
  }
  if (host.starts_with("*.")) {
    return ObjectToName(host, host.substr(2), /*wildcard=*/true);
  }
  return ObjectToName(host, host, /*wildcard=*/false);
}

bool HostCovers(std::string_view allowed, std::string_view wanted) {
  const auto below = [](std::string_view name, std::string_view domain) {
    return name.size() > domain.size() + 1 && name.ends_with(domain) &&
           name[name.size() - domain.size() - 1] == '.';
  };
  const bool with_self = allowed.starts_with("**.");
  if (!with_self && !allowed.starts_with("*.")) {
    return allowed == wanted;
  }
  const std::string_view domain = allowed.substr(with_self ? 3 : 2);
  if (wanted.starts_with("**.")) {
    const std::string_view name = wanted.substr(3);
    return (with_self && name == domain) || below(name, domain);
  }
  if (wanted.starts_with("*.")) {
    const std::string_view name = wanted.substr(2);
    return name == domain || below(name, domain);
  }
  return (with_self && wanted == domain) || below(wanted, domain);
}

}  // namespace coffer::policy
