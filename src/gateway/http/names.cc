// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/names.h"

#include <algorithm>
#include <cstddef>

#include "base/ascii.h"
#include "base/hex.h"
#include "base/utf8.h"

namespace coffer::gateway {

bool IsId(std::string_view text) {
  if (text.size() != 36) {
    return false;
  }
  for (size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    const char c = text[i];
    if (dash ? c != '-' : HexValue(c) < 0) {
      return false;
    }
  }
  return true;
}

bool IsName(std::string_view text) {
  constexpr std::string_view kMarks = "._:@-";
  return !text.empty() && text.size() <= 128 && IsAlphanumeric(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return IsAlphanumeric(c) || kMarks.find(c) != std::string_view::npos;
         });
}

bool IsHash(std::string_view text) {
  constexpr std::string_view kKind = "sha256:";
  return text.size() == kKind.size() + 64 && text.starts_with(kKind) &&
         IsHex(text.substr(kKind.size()));
}

bool IsCursor(std::string_view text) {
  return !text.empty() && text.size() <= 128 && std::all_of(text.begin(), text.end(), [](char c) {
    return IsAlphanumeric(c) || c == '.' || c == '_' || c == '-';
  });
}

bool IsNewFilePath(std::string_view text) {
  const auto control = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  };
  if (!IsFilePath(text) || std::count(text.begin(), text.end(), '/') >= 32 ||
      std::any_of(text.begin(), text.end(), control) || !IsUtf8(text)) {
    return false;
  }
  // C1 controls in UTF-8: U+0080 to U+009F.
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] == '\xc2' && static_cast<unsigned char>(text[i + 1]) < 0xa0) {
      return false;
    }
  }
  return true;
}

bool IsFilePath(std::string_view text) {
  if (text.empty() || text.size() > 1024 || text.find('\0') != std::string_view::npos) {
    return false;
  }
  while (true) {
    const size_t slash = text.find('/');
    const std::string_view part = text.substr(0, slash);
    if (part.empty() || part == "." || part == ".." || part.size() > 255) {
      return false;
    }
    if (slash == std::string_view::npos) {
      return true;
    }
    text.remove_prefix(slash + 1);
  }
}

}  // namespace coffer::gateway
