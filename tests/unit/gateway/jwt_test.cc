// SPDX-License-Identifier: Apache-2.0
//
// Tokens made here with keys made here, and everything that can be wrong with one.
#include "gateway/jwt.h"

#include <gtest/gtest.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rsa.h>
#include <sodium/utils.h>

#include <memory>
#include <nlohmann/json.hpp>

namespace coffer::gateway {
namespace {

using nlohmann::json;

constexpr Nanos kNow = std::chrono::seconds(1'800'000'000);

std::string Encode(std::string_view bytes) {
  std::string text(
      sodium_base64_ENCODED_LEN(bytes.size(), sodium_base64_VARIANT_URLSAFE_NO_PADDING), '\0');
  ::sodium_bin2base64(text.data(), text.size(),
                      reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
  text.pop_back();
  return text;
}

using Key = std::shared_ptr<EVP_PKEY>;
Key Own(EVP_PKEY* key) { return {key, ::EVP_PKEY_free}; }

std::string Number(const Key& key, const char* name, size_t size) {
  BIGNUM* number = nullptr;
  EXPECT_EQ(::EVP_PKEY_get_bn_param(key.get(), name, &number), 1);
  std::string bytes(size == 0 ? static_cast<size_t>(BN_num_bytes(number)) : size, '\0');
  ::BN_bn2binpad(number, reinterpret_cast<unsigned char*>(bytes.data()),
                 static_cast<int>(bytes.size()));
  ::BN_free(number);
  return bytes;
}

std::string Sign(const Key& key, const std::string& data, bool ecdsa, bool plain) {
  EVP_MD_CTX* context = ::EVP_MD_CTX_new();
  size_t size = 0;
  const auto* bytes = reinterpret_cast<const unsigned char*>(data.data());
  EXPECT_EQ(
      ::EVP_DigestSignInit(context, nullptr, plain ? nullptr : ::EVP_sha256(), nullptr, key.get()),
      1);
  EXPECT_EQ(::EVP_DigestSign(context, nullptr, &size, bytes, data.size()), 1);
  std::string signature(size, '\0');
  auto* out = reinterpret_cast<unsigned char*>(signature.data());
  EXPECT_EQ(::EVP_DigestSign(context, out, &size, bytes, data.size()), 1);
  ::EVP_MD_CTX_free(context);
  signature.resize(size);
  if (!ecdsa) {
    return signature;
  }
  const auto* der = reinterpret_cast<const unsigned char*>(signature.data());
  ECDSA_SIG* sig = ::d2i_ECDSA_SIG(nullptr, &der, static_cast<long>(signature.size()));
  std::string raw(64, '\0');
  ::BN_bn2binpad(::ECDSA_SIG_get0_r(sig), reinterpret_cast<unsigned char*>(raw.data()), 32);
  ::BN_bn2binpad(::ECDSA_SIG_get0_s(sig), reinterpret_cast<unsigned char*>(raw.data() + 32), 32);
  ::ECDSA_SIG_free(sig);
  return raw;
}

struct Issuer {
  // Once for all tests: making RSA keys takes long.
  Key rsa = Own(::EVP_RSA_gen(2048));
  Key ec = Own(::EVP_EC_gen("P-256"));
  Key ed = Own(::EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));

  json Jwks() const {
    std::string x(32, '\0');
    size_t size = x.size();
    EXPECT_EQ(
        ::EVP_PKEY_get_raw_public_key(ed.get(), reinterpret_cast<unsigned char*>(x.data()), &size),
        1);
    return {{"keys",
             {{{"kty", "RSA"},
               {"kid", "r1"},
               {"use", "sig"},
               {"n", Encode(Number(rsa, OSSL_PKEY_PARAM_RSA_N, 0))},
               {"e", Encode(Number(rsa, OSSL_PKEY_PARAM_RSA_E, 0))}},
              {{"kty", "EC"},
               {"kid", "e1"},
               {"crv", "P-256"},
               {"alg", "ES256"},
               {"x", Encode(Number(ec, OSSL_PKEY_PARAM_EC_PUB_X, 32))},
               {"y", Encode(Number(ec, OSSL_PKEY_PARAM_EC_PUB_Y, 32))}},
              {{"kty", "OKP"}, {"kid", "d1"}, {"crv", "Ed25519"}, {"x", Encode(x)}}}}};
  }

  std::string Token(const json& header, const json& claims) const {
    const std::string data = Encode(header.dump()) + "." + Encode(claims.dump());
    const std::string alg = header.value("alg", "");
    const Key& key = alg == "RS256" ? rsa : alg == "ES256" ? ec : ed;
    return data + "." + Encode(Sign(key, data, alg == "ES256", alg == "EdDSA"));
  }
};

const Issuer& TheIssuer() {
  static const Issuer issuer;
  return issuer;
}

json Claims() {
  return {{"iss", "https://id.example.com"},
          {"aud", "coffer"},
          {"sub", "bot-7"},
          {"tenant", "acme"},
          {"role", "agent"},
          {"exp", 1'800'000'300},
          {"iat", 1'800'000'000},
          {"jti", "t1"}};
}

JwtConfig Config() {
  JwtConfig config;
  config.issuer = "https://id.example.com";
  config.audience = "coffer";
  config.jwks = TheIssuer().Jwks().dump();
  return config;
}

std::string Check(const std::string& token, const JwtConfig& config = Config(), Nanos now = kNow) {
  const auto verifier = JwtVerifier::Make(config);
  EXPECT_TRUE(verifier.ok()) << (verifier.ok() ? "" : verifier.error().message);
  const auto identity = (*verifier)->Verify(token, now);
  return identity.ok() ? "ok" : identity.error().message;
}

std::string CheckClaims(const json& change, const JwtConfig& config = Config()) {
  json claims = Claims();
  claims.merge_patch(change);  // null removes
  return Check(TheIssuer().Token({{"alg", "EdDSA"}, {"kid", "d1"}}, claims), config);
}

TEST(Jwt, EveryAlgorithm) {
  for (const auto& [alg, kid] : {std::pair{"RS256", "r1"}, {"ES256", "e1"}, {"EdDSA", "d1"}}) {
    EXPECT_EQ(Check(TheIssuer().Token({{"alg", alg}, {"kid", kid}, {"typ", "JWT"}}, Claims())),
              "ok")
        << alg;
    EXPECT_EQ(Check(TheIssuer().Token({{"alg", alg}}, Claims())), "ok") << alg << " without kid";
    EXPECT_NE(Check(TheIssuer().Token({{"alg", alg}, {"kid", "other"}}, Claims())), "ok") << alg;
  }
}

TEST(Jwt, BecomesAnIdentity) {
  const auto verifier = JwtVerifier::Make(Config());
  ASSERT_TRUE(verifier.ok());
  const auto identity =
      (*verifier)->Verify(TheIssuer().Token({{"alg", "ES256"}, {"kid", "e1"}}, Claims()), kNow);
  ASSERT_TRUE(identity.ok());
  EXPECT_EQ(identity->tenant.name(), "acme");
  EXPECT_EQ(identity->agent, "bot-7");
  EXPECT_EQ(identity->role, Role::kAgent);
  EXPECT_EQ(identity->key_id, "jwt:t1");
}

TEST(Jwt, NoneAndSymmetricDoNotExist) {
  const std::string payload = Encode(Claims().dump());
  for (const char* alg : {"none", "None", "NONE", "HS256", "HS512", "RS1", "ES384", "", "rs256"}) {
    const std::string head = Encode(json{{"alg", alg}}.dump());
    EXPECT_NE(Check(head + "." + payload + "."), "ok") << alg;
    EXPECT_NE(Check(head + "." + payload + "." + Encode("x")), "ok") << alg;
  }
  // The public key as an HMAC secret: the classic confusion.
  const std::string data = Encode(json{{"alg", "HS256"}, {"kid", "r1"}}.dump()) + "." + payload;
  const std::string secret = TheIssuer().Jwks().dump();
  unsigned char mac[32];
  unsigned size = sizeof(mac);
  ::HMAC(::EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
         reinterpret_cast<const unsigned char*>(data.data()), data.size(), mac, &size);
  EXPECT_NE(Check(data + "." + Encode({reinterpret_cast<char*>(mac), size})), "ok");
  EXPECT_NE(Check(Encode(R"({"kid":"r1"})") + "." + payload + "." + Encode("x")), "ok");
}

TEST(Jwt, AKeyIsUsedOnlyAsWhatItIs) {
  // Signed by the Ed25519 key, claiming to be the RSA key's.
  const std::string data =
      Encode(json{{"alg", "RS256"}, {"kid", "d1"}}.dump()) + "." + Encode(Claims().dump());
  EXPECT_NE(Check(data + "." + Encode(Sign(TheIssuer().ed, data, false, true))), "ok");
}

TEST(Jwt, EveryChangedByteIsNoticed) {
  for (const char* alg : {"RS256", "ES256", "EdDSA"}) {
    const std::string token = TheIssuer().Token({{"alg", alg}}, Claims());
    for (size_t at = 0; at < token.size(); at += 13) {
      std::string changed = token;
      changed[at] = changed[at] == 'A' ? 'B' : 'A';
      if (changed != token) {
        EXPECT_NE(Check(changed), "ok") << alg << " " << at;
      }
    }
  }
}

TEST(Jwt, Times) {
  EXPECT_EQ(CheckClaims({{"exp", 1'799'999'971}}), "ok");  // within the leeway of 30 s
  EXPECT_EQ(CheckClaims({{"exp", 1'799'999'970}}), "it has expired");
  EXPECT_EQ(CheckClaims({{"exp", nullptr}}), "it has no exp");
  EXPECT_EQ(CheckClaims({{"exp", "2000000000"}}), "exp is not a time");
  EXPECT_EQ(CheckClaims({{"exp", -1}}), "it has expired");
  EXPECT_EQ(CheckClaims({{"nbf", 1'800'000'030}}), "ok");
  EXPECT_EQ(CheckClaims({{"nbf", 1'800'000'031}}), "it is not valid yet");
  EXPECT_EQ(CheckClaims({{"iat", 1'800'000'031}}), "it was issued in the future");
  EXPECT_EQ(CheckClaims({{"iat", true}}), "iat is not a time");
  EXPECT_EQ(CheckClaims({{"iat", nullptr}, {"exp", 1'800'000'000.5}}), "ok");
}

TEST(Jwt, IssuerAndAudience) {
  EXPECT_EQ(CheckClaims({{"iss", "https://evil.example"}}), "it is from another issuer");
  EXPECT_EQ(CheckClaims({{"iss", nullptr}}), "it is from another issuer");
  EXPECT_EQ(CheckClaims({{"aud", "other"}}), "it is for another audience");
  EXPECT_EQ(CheckClaims({{"aud", {"other", "coffer"}}}), "ok");
  EXPECT_EQ(CheckClaims({{"aud", json::array()}}), "it is for another audience");
  EXPECT_EQ(CheckClaims({{"aud", nullptr}}), "it is for another audience");
  EXPECT_EQ(CheckClaims({{"aud", {{"coffer", true}}}}), "it is for another audience");
}

TEST(Jwt, ClaimsByConfiguration) {
  EXPECT_NE(CheckClaims({{"tenant", nullptr}}), "ok");
  EXPECT_NE(CheckClaims({{"tenant", "../x"}}), "ok");
  EXPECT_NE(CheckClaims({{"tenant", {"a"}}}), "ok");
  EXPECT_NE(CheckClaims({{"sub", ""}}), "ok");
  EXPECT_NE(CheckClaims({{"role", nullptr}}), "ok");
  EXPECT_NE(CheckClaims({{"role", "root"}}), "ok");
  JwtConfig config = Config();
  config.fixed_tenant = "solo";
  config.role_claim = "groups";
  config.role_map = {{"platform-team", Role::kOperator}};
  EXPECT_EQ(CheckClaims({{"tenant", nullptr}, {"groups", "platform-team"}}, config), "ok");
  EXPECT_NE(CheckClaims({{"groups", "operator"}}, config), "ok");  // only what the map says
}

TEST(Jwt, MalformedTokens) {
  const std::string good = TheIssuer().Token({{"alg", "EdDSA"}}, Claims());
  for (const std::string& wrong :
       {std::string(), std::string(".."), std::string("a.b"), good + ".x", good + "=", "=" + good,
        good.substr(1), std::string(9000, 'a') + ".b.c", std::string("e30.e30.e30"),
        std::string("W10.e30.e30")}) {
    EXPECT_NE(Check(wrong), "ok") << wrong.substr(0, 20);
  }
  EXPECT_EQ(Check(TheIssuer().Token({{"alg", "EdDSA"}, {"crit", {"exp"}}}, Claims())),
            "it demands extensions");
}

TEST(Jwt, ConfigurationIsComplete) {
  JwtConfig config = Config();
  config.issuer.clear();
  EXPECT_FALSE(JwtVerifier::Make(config).ok());
  config = Config();
  config.audience.clear();
  EXPECT_FALSE(JwtVerifier::Make(config).ok());
}

TEST(Jwks, RefusesWhatDoesNotBelong) {
  json keys = TheIssuer().Jwks();
  EXPECT_EQ(JwkSet::Parse(keys.dump())->size(), 3U);
  const auto refused = [](const json& key) {
    return !JwkSet::Parse(json{{"keys", {key}}}.dump()).ok();
  };
  EXPECT_TRUE(refused({{"kty", "oct"}, {"k", "c2VjcmV0"}}));
  json with_private = keys["keys"][1];
  with_private["d"] = "AA";
  EXPECT_TRUE(refused(with_private));
  json off_curve = keys["keys"][1];
  off_curve["x"] = off_curve["y"];
  EXPECT_TRUE(refused(off_curve));
  json weak = keys["keys"][0];
  weak["n"] = weak["n"].get<std::string>().substr(0, 171);  // 1024 bits
  EXPECT_TRUE(refused(weak));
  json encryption = keys["keys"][0];
  encryption["use"] = "enc";
  EXPECT_TRUE(refused(encryption));  // left out, and then there is none
  json other_alg = keys["keys"][0];
  other_alg["alg"] = "RS512";
  EXPECT_TRUE(refused(other_alg));
  for (const char* wrong : {"", "[]", "{}", R"({"keys":1})", R"({"keys":[]})", R"({"keys":[1]})"}) {
    EXPECT_FALSE(JwkSet::Parse(wrong).ok()) << wrong;
  }
}

TEST(Jwks, TwoKeysWithoutAnIdAreAmbiguous) {
  json keys = TheIssuer().Jwks();
  json second = keys["keys"][2];
  second["kid"] = "d2";
  keys["keys"].push_back(second);
  JwtConfig config = Config();
  config.jwks = keys.dump();
  EXPECT_NE(Check(TheIssuer().Token({{"alg", "EdDSA"}}, Claims()), config), "ok");
  EXPECT_EQ(Check(TheIssuer().Token({{"alg", "EdDSA"}, {"kid", "d2"}}, Claims()), config), "ok");
}

TEST(Base64Url, OneTextForOneValue) {
  EXPECT_EQ(*DecodeBase64Url(""), "");
  EXPECT_EQ(*DecodeBase64Url("_w"), "\xff");
  EXPECT_EQ(*DecodeBase64Url("YWJj"), "abc");
  for (const char* wrong : {"Y", "YQ==", "YR", "YWJ\n", "+/", "YWJjY"}) {
    EXPECT_FALSE(DecodeBase64Url(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace coffer::gateway
