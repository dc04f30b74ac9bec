// SPDX-License-Identifier: Apache-2.0
#include "base/terminal_text.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/hex.h"
#include "base/utf8.h"

namespace coffer {
namespace {

struct Range {
  uint32_t first;
  uint32_t last;
};
// Controls, and the characters that Unicode calls Bidi_Control, line separator and paragraph separator.
constexpr std::array kObeyed = {Range{0x00, 0x1f},     Range{0x7f, 0x9f},
                                Range{0x61c, 0x61c},   Range{0x200e, 0x200f},
                                Range{0x2028, 0x202e}, Range{0x2066, 0x2069}};

// "\x" with two digits, or "\u" with four.
void AppendEscape(char kind, int digits, uint32_t value, std::string& safe) {
  safe += '\\';
  safe += kind;
  for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4) {
    safe += kHexDigits[value >> shift & 15];
  }
}

bool IsObeyed(uint32_t point) {
  return std::any_of(kObeyed.begin(), kObeyed.end(), [&](const Range& range) {
    return point >= range.first && point <= range.last;
  });
}

}  // namespace

std::string TerminalText(std::string_view text, LineEnds ends) {
  std::string safe;
  safe.reserve(text.size());
  while (!text.empty()) {
    const auto [point, length] = DecodeUtf8(text);
    const std::string_view one = text.substr(0, std::max<size_t>(length, 1));
    text.remove_prefix(one.size());
    const bool kept = ends == LineEnds::kKeep && (one == "\n" || one == "\t");
    if (length == 0) {
      AppendEscape('x', 2, static_cast<unsigned char>(one[0]), safe);
    } else if (!kept && IsObeyed(point)) {
      AppendEscape('u', 4, point, safe);
    } else {
      safe += one;
    }
  }
  return safe;
}

}  // namespace coffer
