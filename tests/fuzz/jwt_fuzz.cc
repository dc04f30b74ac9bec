// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a bearer token, as the claims of a token that is signed well, or as a JWKS file: no crash, nothing is
// verified that the key did not sign, and an identity comes out whole or not at all.
//
// The first byte says which. Whoever can connect can send the first; the second is an issuer gone wrong.
#include <sodium.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "base/utf8.h"
#include "gateway/http/names.h"
#include "gateway/jwks.h"
#include "gateway/jwt.h"

namespace {

using namespace coffer::gateway;

constexpr coffer::Nanos kNow = std::chrono::seconds(1'700'000'000);

void Demand(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "broken: %s\n", what);
    std::abort();
  }
}

std::string Base64Url(std::string_view bytes) {
  std::string text(
      sodium_base64_encoded_len(bytes.size(), sodium_base64_VARIANT_URLSAFE_NO_PADDING), '\0');
  sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(bytes.data()),
                    bytes.size(), sodium_base64_VARIANT_URLSAFE_NO_PADDING);
  text.pop_back();  // the NUL
  return text;
}

struct Issuer {
  unsigned char public_key[crypto_sign_PUBLICKEYBYTES];
  unsigned char secret_key[crypto_sign_SECRETKEYBYTES];
  std::shared_ptr<const JwtVerifier> verifier;

  Issuer() {
    const unsigned char seed[crypto_sign_SEEDBYTES] = {7};
    Demand(sodium_init() >= 0 && crypto_sign_seed_keypair(public_key, secret_key, seed) == 0,
           "the fuzzer has no key");
    const std::string_view key(reinterpret_cast<const char*>(public_key), sizeof(public_key));
    JwtConfig config;
    config.issuer = "https://issuer.example";
    config.audience = "coffer";
    config.jwks =
        R"({"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":")" + Base64Url(key) + R"("}]})";
    auto made = JwtVerifier::Make(config);
    Demand(made.ok(), "the fuzzer has no verifier");
    verifier = std::move(made).value();
  }

  std::string Sign(std::string_view claims) const {
    const std::string text = Base64Url(R"({"alg":"EdDSA","kid":"a"})") + "." + Base64Url(claims);
    unsigned char signature[crypto_sign_BYTES];
    crypto_sign_detached(signature, nullptr, reinterpret_cast<const unsigned char*>(text.data()),
                         text.size(), secret_key);
    return text + "." + Base64Url({reinterpret_cast<const char*>(signature), sizeof(signature)});
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Issuer* const issuer = new Issuer();
  if (size == 0) {
    return 0;
  }
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0: {
      (void)LooksLikeJwt(rest);
      const auto identity = issuer->verifier->Verify(rest, kNow);
      Demand(!identity.ok(), "a token that nobody signed");
      Demand(coffer::IsUtf8(identity.error().message) && identity.error().message.size() < 500,
             "words that cannot be shown");
      break;
    }
    case 1: {
      const auto identity = issuer->verifier->Verify(issuer->Sign(rest), kNow);
      Demand(!identity.ok() || (!identity->tenant.name().empty() && !identity->agent.empty()),
             "half an identity");
      break;
    }
    default: {
      const auto keys = JwkSet::Parse(rest);
      Demand(!keys.ok() || keys->size() > 0, "a set without a key");
      (void)DecodeBase64Url(rest).ok();
    }
  }
  return 0;
}
