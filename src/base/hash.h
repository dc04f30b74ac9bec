// SPDX-License-Identifier: Apache-2.0
//
// SHA-256, whole and streamed, as lower-case hex with the algorithm's name in front: "sha256:ab12...".
#pragma once

#include <sodium/crypto_hash_sha256.h>

#include <string>
#include <string_view>

namespace coffer {

class Sha256 {
 public:
  Sha256() { ::crypto_hash_sha256_init(&state_); }
  void Update(std::string_view bytes) {
    ::crypto_hash_sha256_update(&state_, reinterpret_cast<const unsigned char*>(bytes.data()),
                                bytes.size());
  }
  // May be called once.
  std::string Finish();

 private:
  crypto_hash_sha256_state state_;
};

std::string HashOf(std::string_view bytes);
// The same of both, by HMAC: without the key it says nothing of the bytes.
std::string KeyedHashOf(std::string_view key, std::string_view bytes);

}  // namespace coffer
