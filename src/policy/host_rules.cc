// SPDX-License-Identifier: Apache-2.0
//
// Which hosts may be named in [[network.allow]]. Names are judged by their text alone: a wildcard
// over a domain where strangers get names is as good as the whole internet. Which domains those are
// is the public suffix list's to say (libpsl, as Debian built it in). The address a name resolves
// to is the egress proxy's business, at the time of the connection.
#include <fmt/format.h>
#include <libpsl.h>

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "policy/address_class.h"
#include "policy/host_name.h"
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

std::optional<Objection> ObjectToAddress(std::string_view host, const IpAddress& address) {
  const std::optional<AddressBlock> block = BlockOf(address);
  if (!block) {
    return Objection{
        fmt::format("{} is a bare address: nothing proves who answers there", host),
        "name the host, so that its certificate can be checked; or write dangerously_host "
        "with a reason"};
  }
  const bool possible =
      block->kind == AddressClass::kPrivate || block->kind == AddressClass::kShared;
  return Objection{
      fmt::format("{} is {}{}", host, block->name, possible ? "" : ", which no tool may reach"),
      std::string(possible ? kDangerHint : "name a host outside"), !possible};
}

std::optional<Objection> ObjectToName(std::string_view host, const HostPattern& pattern) {
  const std::string& name = pattern.domain().text();
  const bool wildcard = pattern.kind() != HostPattern::Kind::kExact;
  if (IsLocalName(name)) {
    return Objection{"localhost is the host itself, which no tool may reach", "name a host outside",
                     true};
  }
  if (!wildcard && IsMetadataName(name)) {
    return Objection{
        fmt::format("{} is the metadata service of a cloud, which no tool may reach", host),
        "name a host outside", true};
  }
  if (name.find('.') == std::string::npos) {
    return Objection{
        wildcard ? fmt::format("{} covers a whole top-level domain", host)
                 : fmt::format("{} has one label: what it means depends on the network", host),
        std::string(kDangerHint)};
  }
  if (wildcard && IsSharedDomain(name)) {
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
  const Result<HostPattern> pattern = HostPattern::Parse(host);
  if (!pattern.ok()) {
    return Objection{pattern.error().message,
                     pattern.error().hint.empty()
                         ? "write it in lower case, without scheme, port or final dot"
                         : pattern.error().hint,
                     true};
  }
  // A manifest is read by people: what they see is what is meant.
  if (pattern->text() != host) {
    return Objection{
        fmt::format("\"{}\" is not the form in which the name is used", Printable(host)),
        fmt::format("write {}", pattern->text()), true};
  }
  if (const auto& address = pattern->domain().address()) {
    return ObjectToAddress(host, *address);
  }
  return ObjectToName(host, *pattern);
}

bool HostCovers(std::string_view allowed, std::string_view wanted) {
  const Result<HostPattern> wide = HostPattern::Parse(allowed);
  const Result<HostPattern> narrow = HostPattern::Parse(wanted);
  return wide.ok() && narrow.ok() && wide->Covers(*narrow);
}

}  // namespace coffer::policy
