// SPDX-License-Identifier: Apache-2.0
#include "gateway/mcp/stranger_text.h"

#include <cstdint>

#include "base/utf8.h"

namespace coffer::gateway {
namespace {

struct Range {
  uint32_t first, last;
};

constexpr Range kUnseen[] = {
    {0x00, 0x08},       {0x0b, 0x1f},
    {0x7f, 0x9f},  // control characters, but for tab and line end
    {0xad, 0xad},       {0x34f, 0x34f},
    {0x61c, 0x61c},  // soft hyphen, joiner, direction
    {0x115f, 0x1160},   {0x17b4, 0x17b5},
    {0x180b, 0x180f},  // fillers, vowels and selectors without a shape
    {0x200b, 0x200f},   {0x2028, 0x202e},
    {0x2060, 0x206f},  // no width, line separators, direction
    {0x3164, 0x3164},   {0xe000, 0xf8ff},
    {0xfe00, 0xfe0e},  // filler, private use, selectors
    {0xfeff, 0xfeff},   {0xffa0, 0xffa0},
    {0xfff0, 0xfffb},                         // byte order mark, filler, annotations
    {0x1d173, 0x1d17a}, {0xe0000, 0x10ffff},  // musical controls; tags, selectors, private use
};

bool IsSeen(uint32_t character) {
  for (const Range& range : kUnseen) {
    if (character >= range.first && character <= range.last) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string VisibleText(std::string_view text, size_t most) {
  std::string seen;
  while (!text.empty()) {
    const auto [character, length] = DecodeUtf8(text);
    if (length > 0 && IsSeen(character)) {
      if (seen.size() + length > most) {
        return seen + "...";
      }
      seen += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return seen;
}

bool IsVisibleText(std::string_view text) { return VisibleText(text, text.size()) == text; }

}  // namespace coffer::gateway
