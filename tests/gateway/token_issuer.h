// SPDX-License-Identifier: Apache-2.0
//
// An identity provider with one Ed25519 key: its JWKS, and the tokens that it makes for the audience `coffer`.
#pragma once

#include <gtest/gtest.h>
#include <sodium/crypto_sign.h>
#include <sodium/utils.h>

#include <ctime>
#include <nlohmann/json.hpp>
#include <string>

namespace coffer::test {

class TokenIssuer {
 public:
  TokenIssuer() { EXPECT_EQ(::crypto_sign_keypair(public_, secret_), 0); }
  static constexpr const char* kName = "https://issuer";

  std::string Jwks() const {
    return nlohmann::json{
        {"keys",
         {{{"kty", "OKP"},
           {"crv", "Ed25519"},
           {"kid", "k"},
           {"x", Encode({reinterpret_cast<const char*>(public_), sizeof(public_)})}}}}}
        .dump();
  }
  std::string Token(const std::string& tenant, const std::string& role, int lifetime = 600,
                    const std::string& audience = "coffer") const {
    const std::string said =
        Encode(nlohmann::json{{"alg", "EdDSA"}, {"kid", "k"}, {"typ", "JWT"}}.dump()) + "." +
        Encode(nlohmann::json{{"iss", kName},
                              {"aud", audience},
                              {"sub", "bot"},
                              {"tenant", tenant},
                              {"role", role},
                              {"iat", std::time(nullptr)},
                              {"exp", std::time(nullptr) + lifetime}}
                   .dump());
    std::string signature(crypto_sign_BYTES, '\0');
    EXPECT_EQ(::crypto_sign_detached(reinterpret_cast<unsigned char*>(signature.data()), nullptr,
                                     reinterpret_cast<const unsigned char*>(said.data()),
                                     said.size(), secret_),
              0);
    return said + "." + Encode(signature);
  }

 private:
  static std::string Encode(const std::string& bytes) {
    std::string text(
        sodium_base64_ENCODED_LEN(bytes.size(), sodium_base64_VARIANT_URLSAFE_NO_PADDING), '\0');
    ::sodium_bin2base64(text.data(), text.size(),
                        reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                        sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    text.pop_back();
    return text;
  }
  unsigned char public_[crypto_sign_PUBLICKEYBYTES];
  unsigned char secret_[crypto_sign_SECRETKEYBYTES];
};

}  // namespace coffer::test
