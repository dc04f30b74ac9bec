// SPDX-License-Identifier: Apache-2.0
//
// Bytes as base64 with padding (RFC 4648 section 4), through libsodium.
#pragma once

#include <sodium/utils.h>

#include <string>
#include <string_view>

namespace coffer {

inline std::string Base64Of(std::string_view bytes) {
  std::string text(sodium_base64_ENCODED_LEN(bytes.size(), sodium_base64_VARIANT_ORIGINAL), '\0');
  ::sodium_bin2base64(text.data(), text.size(),
                      reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                      sodium_base64_VARIANT_ORIGINAL);
  text.pop_back();  // the NUL
  return text;
}

}  // namespace coffer
