// SPDX-License-Identifier: Apache-2.0
//
// An IP address and a range of them, as numbers.
//
// Text becomes an address in one form only: four decimal numbers without leading zeros, or RFC 5952
// for IPv6. The other forms that C libraries read (127.1, 0x7f000001, 2130706433, 0177.0.0.1,
// fe80::1%eth0) are refused, because a filter and a resolver that read them differently can be
// played against each other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace coffer::policy {

class IpAddress {
 public:
  // "192.0.2.7", "2001:db8::1" (letters in either case). Nothing for any other text.
  static std::optional<IpAddress> Parse(std::string_view text);
  static IpAddress V4(std::array<uint8_t, 4> bytes);
  static IpAddress V6(std::array<uint8_t, 16> bytes);

  bool is_v6() const { return v6_; }
  // 4 or 16 bytes, most significant first.
  size_t size() const { return v6_ ? 16 : 4; }
  uint8_t operator[](size_t i) const { return bytes_[i]; }
  const uint8_t* data() const { return bytes_.data(); }
  // The one form that Parse reads; lower case, no brackets.
  std::string text() const;
  bool operator==(const IpAddress&) const = default;

 private:
  std::array<uint8_t, 16> bytes_{};
  bool v6_ = false;
};

// All addresses that share the first `bits` bits with `base`.
struct AddressRange {
  IpAddress base;
  uint8_t bits = 0;

  bool Contains(const IpAddress& address) const;
  bool Contains(const AddressRange& other) const;
  std::string text() const;  // "10.0.0.0/8"
  bool operator==(const AddressRange&) const = default;
};

// "10.0.0.0/8", "fd00:1::/64", or one address. Refused if bits behind the prefix are set: the text is ambiguous.
Result<AddressRange> ParseAddressRange(std::string_view text);

}  // namespace coffer::policy
