// SPDX-License-Identifier: Apache-2.0
#include "policy/folded_name.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/ascii.h"
#include "base/utf8.h"

namespace coffer::policy {
namespace {

struct CodePoints {
  uint32_t first;
  uint32_t last;
};
// Default_Ignorable_Code_Point of Unicode's DerivedCoreProperties.txt.
constexpr std::array kIgnorable = {
    CodePoints{0x00ad, 0x00ad},   CodePoints{0x034f, 0x034f},   CodePoints{0x061c, 0x061c},
    CodePoints{0x115f, 0x1160},   CodePoints{0x17b4, 0x17b5},   CodePoints{0x180b, 0x180f},
    CodePoints{0x200b, 0x200f},   CodePoints{0x202a, 0x202e},   CodePoints{0x2060, 0x206f},
    CodePoints{0x3164, 0x3164},   CodePoints{0xfe00, 0xfe0f},   CodePoints{0xfeff, 0xfeff},
    CodePoints{0xffa0, 0xffa0},   CodePoints{0xfff0, 0xfff8},   CodePoints{0x1bca0, 0x1bca3},
    CodePoints{0x1d173, 0x1d17a}, CodePoints{0xe0000, 0xe0fff},
};

bool IsIgnorable(uint32_t point) {
  return std::any_of(kIgnorable.begin(), kIgnorable.end(), [&](const CodePoints& range) {
    return point >= range.first && point <= range.last;
  });
}

}  // namespace

std::string FoldedName(std::string_view name) {
  std::string folded;
  folded.reserve(name.size());
  while (!name.empty()) {
    const Utf8Character next = DecodeUtf8(name);
    if (next.length <= 1) {  // ASCII, or not text
      folded += LowerCase(name[0]);
      name.remove_prefix(1);
      continue;
    }
    if (next.point == 0x17f) {  // the long s
      folded += 's';
    } else if (next.point == 0x212a) {  // the sign of Kelvin
      folded += 'k';
    } else if (!IsIgnorable(next.point)) {
      folded += name.substr(0, next.length);
    }
    name.remove_prefix(next.length);
  }
  return folded;
}

}  // namespace coffer::policy
