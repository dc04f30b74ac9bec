// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <sodium/crypto_auth_hmacsha256.h>

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

std::string KeyedHashOf(std::string_view key, std::string_view bytes) {
  const auto raw = [](std::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.data());
  };
  crypto_auth_hmacsha256_state state;
  ::crypto_auth_hmacsha256_init(&state, raw(key), key.size());
  ::crypto_auth_hmacsha256_update(&state, raw(bytes), bytes.size());
  std::array<unsigned char, crypto_auth_hmacsha256_BYTES> digest;
  ::crypto_auth_hmacsha256_final(&state, digest.data());
  return "sha256:" + HexOf(digest.data(), digest.size());
}

}  // namespace coffer
