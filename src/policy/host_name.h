// SPDX-License-Identifier: Apache-2.0
//
// The host of a connection as a value: a DNS name in lower case with A-labels, or an IP address.
//
// Bytes become a HostName once, where they arrive (a proxy request, a SOCKS name, a server name in
// TLS, a flag, a manifest), and from then on only the value is matched, resolved, dialled, verified
// and written down. So no two parts of the program can read one name differently. Refused are NUL
// and control characters, spaces, "%", "@", brackets around a name, empty labels and final dots,
// names over 253 and labels over 63 bytes, last labels that are numbers (an address in another
// form), and what IDNA2008 does not allow; a fullwidth dot is not a dot.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "policy/ip_address.h"

namespace coffer::policy {

class HostName {
 public:
  HostName() = default;  // no host: equal to none that was parsed, covered by no pattern
  // A name (UTF-8 is converted to A-labels), or an address without brackets. Refused with a hint otherwise.
  static Result<HostName> Parse(std::string_view text);
  static HostName Of(const IpAddress& address);

  const std::string& text() const { return text_; }
  const std::optional<IpAddress>& address() const { return address_; }
  bool empty() const { return text_.empty(); }
  // True for "a.d" and "b.a.d" if this is "d". Addresses have nothing below them.
  bool HasBelow(const HostName& other) const;
  bool operator==(const HostName& other) const { return text_ == other.text_; }

 private:
  std::string text_;
  std::optional<IpAddress> address_;
};

// A host with a port, as in the target of CONNECT.
struct HostAndPort {
  HostName host;
  uint16_t port = 0;         // 0: none was written
  std::string text() const;  // "api.example.com:443", "[2001:db8::1]:443"
  bool operator==(const HostAndPort&) const = default;
};
// "name", "name:443", "[2001:db8::1]:443". No user, no empty port, no leading zeros.
Result<HostAndPort> ParseHostAndPort(std::string_view text);

// Which hosts a rule is about.
class HostPattern {
 public:
  enum class Kind : uint8_t {
    kExact,         // "d": d alone
    kBelow,         // "*.d": every name below d, at any depth
    kSelfAndBelow,  // "**.d": the same and d
    kAny,  // every name; of dangerously_allow_any_host, and of rules that open nothing by themselves
  };
  HostPattern() = default;  // covers nothing
  static Result<HostPattern> Parse(std::string_view text);
  static HostPattern Any();
  static HostPattern Exactly(HostName host);

  Kind kind() const { return kind_; }
  const HostName& domain() const { return domain_; }
  std::string text() const;  // as Parse reads it; "*" for kAny
  bool Covers(const HostName& host) const;
  // True if this covers everything that `other` covers.
  bool Covers(const HostPattern& other) const;
  bool operator==(const HostPattern&) const = default;

 private:
  Kind kind_ = Kind::kExact;
  HostName domain_;
};

}  // namespace coffer::policy
