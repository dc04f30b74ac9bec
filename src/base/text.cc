// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include "base/hex.h"

namespace coffer {

std::string Printable(std::string_view text) {
  static constexpr size_t kLongest = 200;
  std::string safe;
  for (size_t i = 0; i < text.size(); ++i) {
    if (safe.size() >= kLongest) {
      return safe + "...";
    }
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0x20 && byte < 0x7f) {
      safe += text[i];
    } else {
      safe += "\\x";
      safe += kHexDigits[byte >> 4];
      safe += kHexDigits[byte & 15];
    }
  }
  return safe;
}

}  // namespace coffer
