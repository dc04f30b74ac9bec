// SPDX-License-Identifier: Apache-2.0
#include "base/percent.h"

#include "base/hex.h"

namespace coffer {
namespace {

bool IsPlain(char c) {
  constexpr std::string_view kMarks = "-._~/";
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         kMarks.find(c) != std::string_view::npos;
}

}  // namespace

std::string PercentEncodePath(std::string_view path) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string text;
  for (const char c : path) {
    if (IsPlain(c)) {
      text += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      text += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return text;
}

std::optional<std::string> PercentDecode(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    if (i + 2 >= text.size()) {
      return std::nullopt;
    }
    const int high = EitherCaseHexValue(text[i + 1]);
    const int low = EitherCaseHexValue(text[i + 2]);
    if (high < 0 || low < 0 || (high == 0 && low == 0)) {
      return std::nullopt;
    }
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

}  // namespace coffer
