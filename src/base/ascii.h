// SPDX-License-Identifier: Apache-2.0
//
// Classes of ASCII characters. Unlike those of <cctype> they do not ask the locale and take any char.
#pragma once

namespace coffer {

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool IsHexDigit(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
constexpr bool IsAlphanumeric(char c) { return IsDigit(c) || IsLetter(c); }
constexpr char LowerCase(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace coffer
