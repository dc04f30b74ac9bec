// SPDX-License-Identifier: Apache-2.0
#include "audit/log/encoding.h"

#include <algorithm>

namespace coffer::audit {
namespace {

constexpr char kBase64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int16_t, 256> ReverseOf(std::string_view alphabet) {
  std::array<int16_t, 256> values{};
  values.fill(-1);
  for (size_t i = 0; i < alphabet.size(); ++i) {
    values[static_cast<uint8_t>(alphabet[i])] = static_cast<int16_t>(i);
  }
  return values;
}
constexpr std::array<int16_t, 256> kBase64Values = ReverseOf({kBase64, 64});

}  // namespace

std::string HexOf(const Hash& hash) { return coffer::HexOf(BytesOf(hash)); }

std::optional<Hash> HashFromBytes(std::string_view bytes) {
  Hash hash;
  if (bytes.size() != hash.size()) {
    return std::nullopt;
  }
  std::copy(bytes.begin(), bytes.end(), hash.begin());
  return hash;
}

std::optional<Hash> HashFromHex(std::string_view hex) {
  const std::optional<std::string> bytes = FromHex(hex);
  return bytes ? HashFromBytes(*bytes) : std::nullopt;
}

std::string Base64Of(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t have = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8 | (k < have ? static_cast<uint8_t>(bytes[i + k]) : 0);
    }
    for (size_t k = 0; k < 4; ++k) {
      text += k <= have ? kBase64[group >> (18 - 6 * k) & 63] : '=';
    }
  }
  return text;
}
std::string Base64Of(const Hash& hash) { return Base64Of(BytesOf(hash)); }

std::optional<std::string> FromBase64(std::string_view text) {
  if (text.size() % 4 != 0) {
    return std::nullopt;
  }
  size_t padding = 0;
  while (padding < 2 && !text.empty() && text.back() == '=') {
    text.remove_suffix(1);
    ++padding;
  }
  std::string bytes(text.size() * 3 / 4, '\0');
  char* next = bytes.data();
  const auto value_at = [text](size_t at) { return kBase64Values[static_cast<uint8_t>(text[at])]; };
  size_t at = 0;
  for (; at + 4 <= text.size(); at += 4) {
    const int group =
        value_at(at) << 18 | value_at(at + 1) << 12 | value_at(at + 2) << 6 | value_at(at + 3);
    if (group < 0) {
      return std::nullopt;  // each digit that is none sets the sign
    }
    *next++ = static_cast<char>(group >> 16);
    *next++ = static_cast<char>(group >> 8 & 255);
    *next++ = static_cast<char>(group & 255);
  }
  uint32_t bits = 0;
  int held = 0;
  for (; at < text.size(); ++at) {
    const int value = value_at(at);
    if (value < 0) {
      return std::nullopt;
    }
    bits = bits << 6 | static_cast<uint32_t>(value);
    held += 6;
    if (held >= 8) {
      held -= 8;
      *next++ = static_cast<char>(bits >> held & 255);
    }
  }
  if ((bits & ((1u << held) - 1)) != 0) {
    return std::nullopt;  // bits that no byte needs
  }
  return bytes;
}

std::optional<uint64_t> FromDecimal(std::string_view digits) {
  if (digits.empty() || digits.size() > 19 || (digits.size() > 1 && digits[0] == '0')) {
    return std::nullopt;
  }
  uint64_t value = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') {
      return std::nullopt;
    }
    value = value * 10 + static_cast<uint64_t>(c - '0');  // 19 digits fit
  }
  return value < (uint64_t{1} << 63) ? std::optional(value) : std::nullopt;
}

}  // namespace coffer::audit
