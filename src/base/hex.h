// SPDX-License-Identifier: Apache-2.0
//
// Bytes as lower-case hexadecimal digits, and back. Upper case is refused: each value has one spelling.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace coffer {

inline constexpr char kHexDigits[] = "0123456789abcdef";

// The value of a lower-case digit; -1 if `c` is not one.
constexpr int HexValue(char c) {
  return c >= '0' && c <= '9' ? c - '0' : (c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1);
}

// The same for digits of either case.
constexpr int EitherCaseHexValue(char c) {
  return HexValue(c >= 'A' && c <= 'F' ? static_cast<char>(c + ('a' - 'A')) : c);
}

// Whether every character is a lower-case digit; true of the empty text.
constexpr bool IsHex(std::string_view text) {
  return text.find_first_not_of(kHexDigits) == std::string_view::npos;
}

inline std::string HexOf(std::string_view bytes) {
  std::string hex;
  hex.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    hex += kHexDigits[static_cast<unsigned char>(c) >> 4];
    hex += kHexDigits[static_cast<unsigned char>(c) & 15];
  }
  return hex;
}
inline std::string HexOf(const unsigned char* bytes, size_t size) {
  return HexOf({reinterpret_cast<const char*>(bytes), size});
}

inline std::optional<std::string> FromHex(std::string_view hex) {
  if (hex.size() % 2 != 0) {
    return std::nullopt;
  }
  std::string bytes;
  bytes.reserve(hex.size() / 2);
  for (size_t i = 0; i < hex.size(); i += 2) {
    const int high = HexValue(hex[i]);
    const int low = HexValue(hex[i + 1]);
    if (high < 0 || low < 0) {
      return std::nullopt;
    }
    bytes += static_cast<char>(high << 4 | low);
  }
  return bytes;
}

}  // namespace coffer
