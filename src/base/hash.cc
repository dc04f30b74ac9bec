// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <array>

#include "base/hex.h"

namespace coffer {

std::string Sha256::Finish() {
  std::array<unsigned char, crypto_hash_sha256_BYTES> digest;
  ::crypto_hash_sha256_final(&state_, digest.data());
  return "sha256:" + HexOf(digest.data(), digest.size());
}

std::string HashOf(std::string_view bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.Finish();
}

}  // namespace coffer
