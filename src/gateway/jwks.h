// SPDX-License-Identifier: Apache-2.0
//
// Public keys of an issuer, from a JWKS document (RFC 7517), and the check of one signature.
//
// A key has one algorithm, given by its type: RSA of 2048 to 8192 bits is RS256, P-256 is ES256,
// Ed25519 is EdDSA. A token's header never chooses how a key is used. Keys of other types or for
// other uses are left out; a file that leaves none is an error. Symmetric keys in the file are an
// error: they have no business there.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace coffer::gateway {

enum class JwtAlgorithm { kRs256, kEs256, kEdDsa };

class JwkSet {
 public:
  static Result<JwkSet> Parse(std::string_view json_text);
  JwkSet(JwkSet&&) noexcept;
  JwkSet& operator=(JwkSet&&) noexcept;
  ~JwkSet();

  size_t size() const;
  // Whether a key with this id and algorithm made `signature` over `data`. With an empty id, the only key of that
  // algorithm is taken; if there are several, no.
  bool Verify(JwtAlgorithm algorithm, std::string_view key_id, std::string_view data,
              std::string_view signature) const;

 private:
  struct Key;
  JwkSet();
  std::vector<std::unique_ptr<Key>> keys_;
};

// Base64url without padding, exactly as RFC 7515 has it; nothing else is decoded.
Result<std::string> DecodeBase64Url(std::string_view text);

}  // namespace coffer::gateway
