// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <array>

namespace coffer {

std::string Sha256::Finish() {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::array<unsigned char, crypto_hash_sha256_BYTES> digest;
  ::crypto_hash_sha256_final(&state_, digest.data());
  std::string text = "sha256:";
  for (const unsigned char byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string HashOf(std::string_view bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.Finish();
}

}  // namespace coffer
