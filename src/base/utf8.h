// SPDX-License-Identifier: Apache-2.0
//
// UTF-8 as RFC 3629 has it: the shortest form, no surrogates, nothing beyond U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace coffer {

// How many bytes the first character of `text` takes; 0 if `text` is empty or does not begin with one.
inline size_t Utf8Length(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (text.empty()) {
    return 0;
  }
  const unsigned char first = at(0);
  if (first < 0x80) {
    return 1;
  }
  // The second byte's range keeps out overlong forms, surrogates and what lies beyond U+10FFFF (Unicode, table 3-7).
  size_t length = 0;
  unsigned char low = 0x80;
  unsigned char high = 0xbf;
  if (first >= 0xc2 && first <= 0xdf) {
    length = 2;
  } else if (first >= 0xe0 && first <= 0xef) {
    length = 3;
    low = first == 0xe0 ? 0xa0 : low;
    high = first == 0xed ? 0x9f : high;
  } else if (first >= 0xf0 && first <= 0xf4) {
    length = 4;
    low = first == 0xf0 ? 0x90 : low;
    high = first == 0xf4 ? 0x8f : high;
  }
  if (length == 0 || text.size() < length || at(1) < low || at(1) > high) {
    return 0;
  }
  for (size_t i = 2; i < length; ++i) {
    if ((at(i) & 0xc0) != 0x80) {
      return 0;
    }
  }
  return length;
}

struct Utf8Character {
  uint32_t point = 0;
  size_t length = 0;  // in bytes; 0: there is none
};

// The first character of `text`. Nothing if `text` is empty or does not begin with one.
inline Utf8Character DecodeUtf8(std::string_view text) {
  const size_t length = Utf8Length(text);
  if (length == 0) {
    return {};
  }
  const auto first = static_cast<unsigned char>(text[0]);
  uint32_t point = length == 1 ? first : first & (0x7fU >> length);
  for (size_t i = 1; i < length; ++i) {
    point = point << 6 | (static_cast<unsigned char>(text[i]) & 0x3fU);
  }
  return {point, length};
}

inline bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    if (length == 0) {
      return false;
    }
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace coffer
