// SPDX-License-Identifier: Apache-2.0
#include "policy/host_name.h"

#include <fmt/format.h>
#include <idn2.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include "base/ascii.h"
#include "base/hex.h"
#include "base/split.h"
#include "base/text.h"

namespace coffer::policy {
namespace {

constexpr size_t kLongestHostName = 253;
constexpr size_t kLongestLabel = 63;
constexpr size_t kLongestInput = 1024;  // UTF-8 of the longest name

Error NotAHost(std::string_view text, std::string_view why, std::string hint) {
  return Refused("policy.host", fmt::format("\"{}\" is not a host name: {}", Printable(text), why),
                 std::move(hint));
}

bool IsLabel(std::string_view label) {
  return !label.empty() && label.size() <= kLongestLabel && label.front() != '-' &&
         label.back() != '-' && std::all_of(label.begin(), label.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
         });
}

// "1", "0x7f", "0177": C libraries read a name that ends in one as an address.
bool IsNumber(std::string_view label) {
  if (label.starts_with("0x")) {
    return IsHex(label.substr(2));
  }
  return label.find_first_not_of("0123456789") == std::string_view::npos;
}

// A-labels of a name with letters beyond ASCII, or with "xn--" in it; nothing if IDNA2008 does not allow it. Strict: no
// mapping of compatibility characters (UTS 46), so that two spellings never become one name behind the reader's back.
std::optional<std::string> ToAscii(const std::string& name) {
  uint8_t* made = nullptr;
  const int result = ::idn2_lookup_u8(reinterpret_cast<const uint8_t*>(name.c_str()), &made,
                                      IDN2_NFC_INPUT | IDN2_NO_TR46 | IDN2_ALABEL_ROUNDTRIP);
  const std::unique_ptr<char, void (*)(void*)> owner(reinterpret_cast<char*>(made), ::idn2_free);
  return result == IDN2_OK && made != nullptr ? std::optional<std::string>(owner.get())
                                              : std::nullopt;
}

// Refusals that have a better explanation than "not a label".
std::optional<Error> ObjectToBytes(std::string_view text) {
  const std::string bare = "write the host alone, such as api.example.com";
  if (text.empty()) {
    return NotAHost(text, "it is empty", bare);
  }
  if (text.size() > kLongestInput) {
    return NotAHost(text, "it is longer than 253 bytes", bare);
  }
  for (const char c : text) {
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f) {
      return NotAHost(text, "it has a space, NUL or control character", bare);
    }
  }
  if (const size_t at = text.find_first_of("%@[]/\\?#:*"); at != std::string_view::npos) {
    return NotAHost(text, fmt::format("it has a \"{}\"", text[at]), bare);
  }
  if (text.back() == '.') {
    return NotAHost(text, "it ends with a dot", "leave the final dot out");
  }
  return std::nullopt;
}

}  // namespace

Result<HostName> HostName::Parse(std::string_view text) {
  if (const auto address = IpAddress::Parse(text)) {
    return Of(*address);
  }
  if (std::count(text.begin(), text.end(), ':') > 1) {
    return NotAHost(text, "it is an IPv6 address in another form than RFC 5952",
                    "write it as 2001:db8::1: short, without a zone");
  }
  if (auto objection = ObjectToBytes(text)) {
    return *std::move(objection);
  }
  std::string name(text);
  std::transform(name.begin(), name.end(), name.begin(), LowerCase);
  const bool ascii = std::all_of(name.begin(), name.end(),
                                 [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (!ascii || name.starts_with("xn--") || name.find(".xn--") != std::string::npos) {
    std::optional<std::string> converted = ToAscii(name);
    if (!converted || (ascii && *converted != name)) {
      return NotAHost(text, "IDNA2008 does not allow it",
                      "write it in lower case; a dot is \".\" and nothing else");
    }
    name = *std::move(converted);
  }
  const std::vector<std::string_view> labels = SplitText(name, '.');
  if (name.size() > kLongestHostName) {
    return NotAHost(text, "it is longer than 253 bytes", "");
  }
  for (const std::string_view label : labels) {
    if (!IsLabel(label)) {
      return NotAHost(text, label.empty() ? "it has an empty label" : "it has an invalid label",
                      "labels are 1 to 63 letters, digits and \"-\", with dots between them");
    }
  }
  if (IsNumber(labels.back())) {
    return NotAHost(text, "it is neither a name nor an address",
                    "write an address as four numbers from 0 to 255");
  }
  HostName host;
  host.text_ = std::move(name);
  return host;
}

HostName HostName::Of(const IpAddress& address) {
  HostName host;
  host.text_ = address.text();
  host.address_ = address;
  return host;
}

bool HostName::HasBelow(const HostName& other) const {
  const std::string& name = other.text_;
  return !empty() && !address_ && !other.address_ && name.size() > text_.size() + 1 &&
         name.ends_with(text_) && name[name.size() - text_.size() - 1] == '.';
}

std::string HostAndPort::text() const {
  const bool brackets = host.address() && host.address()->is_v6();
  const std::string name = brackets ? fmt::format("[{}]", host.text()) : host.text();
  return port == 0 ? name : fmt::format("{}:{}", name, port);
}

Result<HostAndPort> ParseHostAndPort(std::string_view text) {
  HostAndPort parsed;
  std::string_view host = text;
  std::string_view rest;
  const bool brackets = text.starts_with('[');
  if (brackets) {
    const size_t close = text.find(']');
    if (close == std::string_view::npos) {
      return NotAHost(text, "a \"]\" is missing", "write [2001:db8::1]:443");
    }
    host = text.substr(1, close - 1);
    rest = text.substr(close + 1);
  } else if (const size_t colon = text.rfind(':'); colon != std::string_view::npos) {
    host = text.substr(0, colon);
    rest = text.substr(colon);
  }
  if (!rest.empty()) {
    const std::string_view digits = rest.substr(1);
    const char* const end = digits.data() + digits.size();
    const auto [stop, problem] = std::from_chars(digits.data(), end, parsed.port);
    if (rest.front() != ':' || problem != std::errc() || stop != end || digits.front() == '0' ||
        parsed.port == 0) {
      return Refused("policy.host",
                     fmt::format("\"{}\" has no port behind its host", Printable(text)),
                     "write a number from 1 to 65535 after the colon; an IPv6 address needs "
                     "brackets, such as [2001:db8::1]:443");
    }
  }
  TRY_ASSIGN(parsed.host, HostName::Parse(host));
  if (brackets != (parsed.host.address() && parsed.host.address()->is_v6())) {
    return NotAHost(text, "brackets are for IPv6 addresses, and those need them",
                    "write api.example.com:443 or [2001:db8::1]:443");
  }
  return parsed;
}

Result<HostPattern> HostPattern::Parse(std::string_view text) {
  HostPattern pattern;
  std::string_view domain = text;
  if (text.starts_with("**.")) {
    pattern.kind_ = Kind::kSelfAndBelow;
    domain.remove_prefix(3);
  } else if (text.starts_with("*.")) {
    pattern.kind_ = Kind::kBelow;
    domain.remove_prefix(2);
  }
  if (domain.find('*') != std::string_view::npos) {
    return Refused("policy.host", fmt::format("\"{}\" is not a host pattern", Printable(text)),
                   "a star stands only in front: *.d means the names below d, **.d those and d");
  }
  TRY_ASSIGN(pattern.domain_, HostName::Parse(domain));
  if (pattern.kind_ != Kind::kExact && pattern.domain_.address()) {
    return Refused("policy.host",
                   fmt::format("\"{}\": an address has no subdomains", Printable(text)),
                   "leave the star out");
  }
  return pattern;
}

HostPattern HostPattern::Exactly(HostName host) {
  HostPattern pattern;
  pattern.domain_ = std::move(host);
  return pattern;
}

HostPattern HostPattern::Any() {
  HostPattern pattern;
  pattern.kind_ = Kind::kAny;
  return pattern;
}

std::string HostPattern::text() const {
  switch (kind_) {
    case Kind::kExact:
      return domain_.text();
    case Kind::kBelow:
      return "*." + domain_.text();
    case Kind::kSelfAndBelow:
      return "**." + domain_.text();
    case Kind::kAny:
      break;
  }
  return "*";
}

bool HostPattern::Covers(const HostName& host) const {
  if (host.empty()) {
    return false;
  }
  switch (kind_) {
    case Kind::kExact:
      return domain_ == host;
    case Kind::kBelow:
      return domain_.HasBelow(host);
    case Kind::kSelfAndBelow:
      return domain_ == host || domain_.HasBelow(host);
    case Kind::kAny:
      break;
  }
  return !host.address();
}

bool HostPattern::Covers(const HostPattern& other) const {
  switch (other.kind_) {
    case Kind::kExact:
      return Covers(other.domain_);
    case Kind::kAny:
      return kind_ == Kind::kAny;
    case Kind::kBelow:
      // Everything below d is also below d's parents, and below d itself whether or not d is meant.
      return kind_ == Kind::kAny || (kind_ != Kind::kExact &&
                                     (domain_ == other.domain_ || domain_.HasBelow(other.domain_)));
    case Kind::kSelfAndBelow:
      break;
  }
  return kind_ != Kind::kExact && Covers(other.domain_);
}

}  // namespace coffer::policy
