// SPDX-License-Identifier: Apache-2.0
//
// Hex and base64 with exactly one spelling: lower case, padded, no stray bits. So no byte of a log can be changed
// without changing what it says.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/hex.h"

namespace coffer::audit {

using Hash = std::array<uint8_t, 32>;

using coffer::HexOf;  // of any bytes
std::string HexOf(const Hash& hash);
std::optional<Hash> HashFromHex(std::string_view hex);

std::string Base64Of(std::string_view bytes);
std::string Base64Of(const Hash& hash);
std::optional<std::string> FromBase64(std::string_view text);

inline std::string_view BytesOf(const Hash& hash) {
  return {reinterpret_cast<const char*>(hash.data()), hash.size()};
}
std::optional<Hash> HashFromBytes(std::string_view bytes);

// 0, or digits without a leading zero, below 2^63.
std::optional<uint64_t> FromDecimal(std::string_view digits);

}  // namespace coffer::audit
