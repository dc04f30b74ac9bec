// SPDX-License-Identifier: Apache-2.0
#include "gateway/jwks.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "base/json.h"

namespace coffer::gateway {
namespace {

template <auto kFree>
struct Freer {
  template <typename T>
  void operator()(T* pointer) const {
    kFree(pointer);
  }
};
using PkeyPtr = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using PkeyCtxPtr = std::unique_ptr<EVP_PKEY_CTX, Freer<EVP_PKEY_CTX_free>>;
using MdCtxPtr = std::unique_ptr<EVP_MD_CTX, Freer<EVP_MD_CTX_free>>;
using BnPtr = std::unique_ptr<BIGNUM, Freer<BN_free>>;
using ParamBldPtr = std::unique_ptr<OSSL_PARAM_BLD, Freer<OSSL_PARAM_BLD_free>>;
using ParamPtr = std::unique_ptr<OSSL_PARAM, Freer<OSSL_PARAM_free>>;
using SigPtr = std::unique_ptr<ECDSA_SIG, Freer<ECDSA_SIG_free>>;

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

PkeyPtr FromParams(const char* type, OSSL_PARAM_BLD* builder) {
  const ParamPtr params(::OSSL_PARAM_BLD_to_param(builder));
  const PkeyCtxPtr context(::EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  EVP_PKEY* key = nullptr;
  if (params == nullptr || context == nullptr || ::EVP_PKEY_fromdata_init(context.get()) != 1 ||
      ::EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, params.get()) != 1) {
    return nullptr;
  }
  return PkeyPtr(key);
}

PkeyPtr MakeRsa(std::string_view n, std::string_view e) {
  const BnPtr modulus(::BN_bin2bn(Bytes(n), static_cast<int>(n.size()), nullptr));
  const BnPtr exponent(::BN_bin2bn(Bytes(e), static_cast<int>(e.size()), nullptr));
  const ParamBldPtr builder(::OSSL_PARAM_BLD_new());
  if (modulus == nullptr || exponent == nullptr || builder == nullptr ||
      ::BN_num_bits(modulus.get()) < 2048 || ::BN_num_bits(modulus.get()) > 8192 ||
      ::BN_num_bits(exponent.get()) > 64 ||
      ::OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, modulus.get()) != 1 ||
      ::OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, exponent.get()) != 1) {
    return nullptr;
  }
  return FromParams("RSA", builder.get());
}

PkeyPtr MakeP256(std::string_view x, std::string_view y) {
  if (x.size() != 32 || y.size() != 32) {
    return nullptr;
  }
  const std::string point = "\x04" + std::string(x) + std::string(y);
  const ParamBldPtr builder(::OSSL_PARAM_BLD_new());
  if (builder == nullptr ||
      ::OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1",
                                        0) != 1 ||
      ::OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                         point.size()) != 1) {
    return nullptr;
  }
  PkeyPtr key = FromParams("EC", builder.get());
  if (key == nullptr) {
    return nullptr;
  }
  // A point that is not on the curve would make the check of a signature meaningless.
  const PkeyCtxPtr check(::EVP_PKEY_CTX_new_from_pkey(nullptr, key.get(), nullptr));
  return check != nullptr && ::EVP_PKEY_public_check(check.get()) == 1 ? std::move(key) : nullptr;
}

PkeyPtr MakeEd25519(std::string_view x) {
  return x.size() != 32 ? nullptr
                        : PkeyPtr(::EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, Bytes(x),
                                                                x.size()));
}

// r || s, 32 bytes each, as DER: what OpenSSL wants (RFC 7518 section 3.4).
std::optional<std::string> DerOf(std::string_view raw) {
  if (raw.size() != 64) {
    return std::nullopt;
  }
  const SigPtr sig(::ECDSA_SIG_new());
  BnPtr r(::BN_bin2bn(Bytes(raw), 32, nullptr));
  BnPtr s(::BN_bin2bn(Bytes(raw.substr(32)), 32, nullptr));
  if (sig == nullptr || r == nullptr || s == nullptr ||
      ::ECDSA_SIG_set0(sig.get(), r.get(), s.get()) != 1) {
    return std::nullopt;
  }
  std::ignore = r.release();  // now the signature's
  std::ignore = s.release();
  unsigned char* der = nullptr;
  const int size = ::i2d_ECDSA_SIG(sig.get(), &der);
  if (size <= 0) {
    return std::nullopt;
  }
  std::string text(reinterpret_cast<const char*>(der), static_cast<size_t>(size));
  ::OPENSSL_free(der);
  return text;
}

// The member as decoded bytes, "" if it is missing or broken.
std::string Member(const Json& jwk, std::string_view name) {
  const auto found = jwk.find(name);
  if (found == jwk.end() || !found->is_string()) {
    return {};
  }
  Result<std::string> bytes = DecodeBase64Url(found->get<std::string>());
  return bytes.ok() ? *bytes : std::string();
}

std::string Text(const Json& jwk, std::string_view name) {
  const auto found = jwk.find(name);
  return found != jwk.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

struct JwkSet::Key {
  std::string id;
  JwtAlgorithm algorithm;
  PkeyPtr key;
};

JwkSet::JwkSet() = default;
JwkSet::JwkSet(JwkSet&&) noexcept = default;
JwkSet& JwkSet::operator=(JwkSet&&) noexcept = default;
JwkSet::~JwkSet() = default;
size_t JwkSet::size() const { return keys_.size(); }

Result<JwkSet> JwkSet::Parse(std::string_view json_text) {
  TRY_ASSIGN(const Json json, ParseJson(json_text));
  if (!json.is_object() || !json.contains("keys") || !json["keys"].is_array() ||
      json["keys"].size() > 100) {
    return Refused("jwt.jwks",
                   "the JWKS file must be an object with a list \"keys\" of at most 100");
  }
  JwkSet set;
  for (const Json& jwk : json["keys"]) {
    if (!jwk.is_object()) {
      return Refused("jwt.jwks", "a key in the JWKS file is not an object");
    }
    const std::string type = Text(jwk, "kty");
    const std::string alg = Text(jwk, "alg");
    const std::string use = Text(jwk, "use");
    if (type == "oct") {
      return Refused("jwt.jwks", "the JWKS file holds a symmetric key", "list public keys only");
    }
    if (jwk.contains("d")) {
      return Refused("jwt.jwks", "the JWKS file holds a private key", "list public keys only");
    }
    auto key = std::make_unique<Key>();
    key->id = Text(jwk, "kid");
    const bool ours =
        (type == "RSA" && (alg.empty() || alg == "RS256")) ||
        (type == "EC" && Text(jwk, "crv") == "P-256" && (alg.empty() || alg == "ES256")) ||
        (type == "OKP" && Text(jwk, "crv") == "Ed25519" && (alg.empty() || alg == "EdDSA"));
    if (!ours || (!use.empty() && use != "sig")) {
      continue;
    }
    if (type == "RSA") {
      key->algorithm = JwtAlgorithm::kRs256;
      key->key = MakeRsa(Member(jwk, "n"), Member(jwk, "e"));
    } else if (type == "EC") {
      key->algorithm = JwtAlgorithm::kEs256;
      key->key = MakeP256(Member(jwk, "x"), Member(jwk, "y"));
    } else {
      key->algorithm = JwtAlgorithm::kEdDsa;
      key->key = MakeEd25519(Member(jwk, "x"));
    }
    if (key->key == nullptr) {
      ::ERR_clear_error();
      return Refused("jwt.jwks", "a key in the JWKS file is broken or too weak",
                     "RSA needs 2048 to 8192 bits");
    }
    set.keys_.push_back(std::move(key));
  }
  if (set.keys_.empty()) {
    return Refused("jwt.jwks", "the JWKS file holds no key for RS256, ES256 or EdDSA");
  }
  return set;
}

bool JwkSet::Verify(JwtAlgorithm algorithm, std::string_view key_id, std::string_view data,
                    std::string_view signature) const {
  const Key* chosen = nullptr;
  for (const auto& key : keys_) {
    if (key->algorithm != algorithm || (!key_id.empty() && key->id != key_id)) {
      continue;
    }
    if (chosen != nullptr) {
      return false;
    }
    chosen = key.get();
  }
  if (chosen == nullptr) {
    return false;
  }
  std::string der;
  if (algorithm == JwtAlgorithm::kEs256) {
    std::optional<std::string> converted = DerOf(signature);
    if (!converted.has_value()) {
      return false;
    }
    der = std::move(*converted);
    signature = der;
  }
  const MdCtxPtr context(::EVP_MD_CTX_new());
  const EVP_MD* digest = algorithm == JwtAlgorithm::kEdDsa ? nullptr : ::EVP_sha256();
  const bool good =
      context != nullptr &&
      ::EVP_DigestVerifyInit(context.get(), nullptr, digest, nullptr, chosen->key.get()) == 1 &&
      ::EVP_DigestVerify(context.get(), Bytes(signature), signature.size(), Bytes(data),
                         data.size()) == 1;
  ::ERR_clear_error();
  return good;
}

Result<std::string> DecodeBase64Url(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() * 3 / 4);
  uint32_t bits = 0;
  int have = 0;
  for (const char c : text) {
    uint32_t value = 0;
    if (c >= 'A' && c <= 'Z') {
      value = static_cast<uint32_t>(c - 'A');
    } else if (c >= 'a' && c <= 'z') {
      value = static_cast<uint32_t>(c - 'a' + 26);
    } else if (c >= '0' && c <= '9') {
      value = static_cast<uint32_t>(c - '0' + 52);
    } else if (c == '-' || c == '_') {
      value = c == '-' ? 62 : 63;
    } else {
      return Refused("jwt.base64", "not base64url");
    }
    bits = (bits << 6 | value) & 0xffffff;
    have += 6;
    if (have >= 8) {
      have -= 8;
      bytes += static_cast<char>(bits >> have & 0xff);
    }
  }
  // One text for one value: no lone sixth bit, nothing set in the bits that are left over.
  if (have == 6 || (bits & ((1U << have) - 1)) != 0) {
    return Refused("jwt.base64", "not base64url");
  }
  return bytes;
}

}  // namespace coffer::gateway
