// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a host, an authority, a path, a range of addresses and a rule: what is accepted has one form, says so again
// when it is read again, and holds nothing that could be read as something else.
//
// The first byte says what the rest is.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "policy/address_class.h"
#include "policy/egress_rule.h"
#include "policy/host_name.h"
#include "policy/manifest/rules.h"
#include "policy/url_path.h"

namespace {

using namespace coffer::policy;

void Demand(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "broken: %s\n", what);
    std::abort();
  }
}

void CheckHost(const HostName& host) {
  const std::string& text = host.text();
  Demand(!text.empty() && text.size() <= 253, "a host's length");
  Demand(text.find_first_not_of(host.address() ? "0123456789abcdef:."
                                               : "0123456789abcdefghijklmnopqrstuvwxyz-.") ==
             std::string::npos,
         "a host's letters");
  Demand(text.back() != '.' && text.front() != '.' && text.find("..") == std::string::npos,
         "an empty label");
  const auto again = HostName::Parse(text);
  Demand(again.ok() && *again == host, "a host is not stable");
  Demand(again->address() == host.address(), "a host's address is not stable");
}

void AsHost(std::string_view text) {
  if (const auto host = HostName::Parse(text); host.ok()) {
    CheckHost(*host);
    (void)ObjectToHost(text);
  }
  if (const auto pattern = HostPattern::Parse(text); pattern.ok()) {
    CheckHost(pattern->domain());
    const auto again = HostPattern::Parse(pattern->text());
    Demand(again.ok() && *again == *pattern && pattern->Covers(*again), "a pattern is not stable");
  }
}

void AsAuthority(std::string_view text) {
  if (const auto parsed = ParseHostAndPort(text); parsed.ok()) {
    CheckHost(parsed->host);
    const auto again = ParseHostAndPort(parsed->text());
    Demand(again.ok() && *again == *parsed, "an authority is not stable");
  }
  if (const auto range = ParseAddressRange(text); range.ok()) {
    Demand(range->Contains(range->base), "a range without its own base");
    Demand(*ParseAddressRange(range->text()) == *range, "a range is not stable");
    (void)IsOfOneKind(*range);
    (void)BlockOf(range->base);
  }
}

void AsPath(std::string_view text) {
  const auto path = UrlPath::Parse(text);
  if (!path.ok()) {
    return;
  }
  const std::string& sent = path->text();
  Demand(sent.starts_with('/'), "a path without a slash");
  for (const char c : sent) {
    Demand(c > ' ' && c < 0x7f && c != '\\' && c != '?' && c != '#', "a path's letters");
  }
  const std::string closed = sent + "/";
  for (const char* bad : {"//", "/./", "/../", "/..;", "/.;", "%2e", "%2E", "%00", "%5C", "%5c"}) {
    // A path that ends with a slash has one more here.
    Demand(closed.substr(0, closed.size() - 1).find(bad) == std::string::npos, "a path's parts");
  }
  Demand(closed.find("/../") == std::string::npos, "a path that ends above");
  const auto again = UrlPath::Parse(sent);
  Demand(again.ok() && again->text() == sent, "a path is not stable");
  Demand(path->Matches("/**"), "a path outside of everything");
  Demand(path->Matches("/v1/**") == again->Matches("/v1/**"), "judged one way, sent another");
  if (path->Matches("/v1/**")) {
    Demand(sent.starts_with("/v1/"), "below by one reading only");
  }
}

void AsRule(std::string_view text) {
  const auto rule = ParseAllow(text);
  if (!rule.ok()) {
    Demand(!rule.error().message.empty(), "a refusal without words");
    return;
  }
  const auto again = ParseAllow(rule->text());
  Demand(again.ok() && *again == *rule, "a rule is not stable");
  Demand(!rule->ports.empty(), "a rule without a port");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      AsHost(text);
      break;
    case 1:
      AsAuthority(text);
      break;
    case 2:
      AsPath(text);
      break;
    default:
      AsRule(text);
  }
  return 0;
}
