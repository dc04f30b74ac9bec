// SPDX-License-Identifier: Apache-2.0
#include "policy/ip_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace coffer::policy {
namespace {

bool SamePrefix(const IpAddress& a, const IpAddress& b, size_t bits) {
  if (a.is_v6() != b.is_v6()) {
    return false;
  }
  const size_t whole = bits / 8;
  if (!std::equal(a.data(), a.data() + whole, b.data())) {
    return false;
  }
  const size_t rest = bits % 8;
  return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

bool IsPrefixOnly(const IpAddress& address, size_t bits) {
  for (size_t i = bits; i < address.size() * 8; ++i) {
    if ((address[i / 8] >> (7 - i % 8) & 1) != 0) {
      return false;
    }
  }
  return true;
}

}  // namespace

IpAddress IpAddress::V4(std::array<uint8_t, 4> bytes) {
  IpAddress address;
  std::copy(bytes.begin(), bytes.end(), address.bytes_.begin());
  return address;
}

IpAddress IpAddress::V6(std::array<uint8_t, 16> bytes) {
  IpAddress address;
  address.bytes_ = bytes;
  address.v6_ = true;
  return address;
}

std::optional<IpAddress> IpAddress::Parse(std::string_view text) {
  if (text.size() < 2 || text.size() >= INET6_ADDRSTRLEN ||
      text.find_first_not_of("0123456789abcdefABCDEF:.") != std::string_view::npos) {
    return std::nullopt;
  }
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c; });
  IpAddress address;
  address.v6_ = lower.find(':') != std::string::npos;
  if (::inet_pton(address.v6_ ? AF_INET6 : AF_INET, lower.c_str(), address.bytes_.data()) != 1 ||
      address.text() != lower) {
    return std::nullopt;
  }
  return address;
}

std::string IpAddress::text() const {
  char text[INET6_ADDRSTRLEN] = {};
  ::inet_ntop(v6_ ? AF_INET6 : AF_INET, bytes_.data(), text, sizeof(text));
  return text;
}

bool AddressRange::Contains(const IpAddress& address) const {
  return SamePrefix(base, address, bits);
}

bool AddressRange::Contains(const AddressRange& other) const {
  return other.bits >= bits && SamePrefix(base, other.base, bits);
}

std::string AddressRange::text() const { return fmt::format("{}/{}", base.text(), bits); }

Result<AddressRange> ParseAddressRange(std::string_view text) {
  const size_t slash = text.find('/');
  const auto address = IpAddress::Parse(text.substr(0, slash));
  if (!address) {
    return Refused("policy.address",
                   fmt::format("\"{}\" is not a range of addresses", Printable(text)),
                   "write an address and the length of its prefix, such as 10.0.0.0/8 or fd00::/8");
  }
  AddressRange range{*address, static_cast<uint8_t>(address->size() * 8)};
  if (slash != std::string_view::npos) {
    const std::string_view number = text.substr(slash + 1);
    unsigned bits = 0;
    const auto [end, problem] = std::from_chars(number.data(), number.data() + number.size(), bits);
    if (problem != std::errc() || end != number.data() + number.size() || number.size() > 3 ||
        (number.size() > 1 && number.front() == '0') || bits > range.bits) {
      return Refused(
          "policy.address",
          fmt::format("\"{}\" has no prefix of 0 to {} bits", Printable(text), range.bits),
          fmt::format("write {}/{} for the one address", address->text(), range.bits));
    }
    range.bits = static_cast<uint8_t>(bits);
  }
  if (!IsPrefixOnly(range.base, range.bits)) {
    return Refused("policy.address", fmt::format("{} has bits behind its prefix", Printable(text)),
                   fmt::format("write {} for that one address, or a range that begins at its first "
                               "address, such as 10.0.0.0/8",
                               address->text()));
  }
  return range;
}

}  // namespace coffer::policy
