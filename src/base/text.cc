// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include "base/hex.h"

namespace coffer {
namespace {

void Append(char c, std::string& safe) {
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 0x20 && byte < 0x7f) {
    safe += c;
    return;
  }
  safe += "\\x";
  safe += kHexDigits[byte >> 4];
  safe += kHexDigits[byte & 15];
}

}  // namespace

std::string Printable(std::string_view text) {
  static constexpr size_t kLongest = 200;
  std::string safe;
  for (const char c : text) {
    if (safe.size() >= kLongest) {
      return safe + "...";
    }
    Append(c, safe);
  }
  return safe;
}

std::string Escaped(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    Append(c, safe);
  }
  return safe;
}

}  // namespace coffer
