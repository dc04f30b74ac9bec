// SPDX-License-Identifier: Apache-2.0
#include "audit/log/signer.h"

#include <sodium.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "audit/log/encoding.h"
#include "base/sys.h"

namespace coffer::audit {
namespace {

constexpr char kEd25519 = 1;  // the signature type of C2SP signed notes

const unsigned char* RawBytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

Result<unsigned char*> SecretFrom(const unsigned char* seed, std::array<uint8_t, 32>& public_half) {
  auto* secret = static_cast<unsigned char*>(::sodium_malloc(crypto_sign_SECRETKEYBYTES));
  if (secret == nullptr) {
    return HostFault("audit.log.key", "no locked memory for the log's key", "raise RLIMIT_MEMLOCK");
  }
  // A child (a runner, an init) has no business with it, and must not even have a copy.
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  void* const start = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(secret) & ~(page - 1));
  if (raw::Syscall(SYS_madvise, raw::Arg(start), page, MADV_DONTFORK) < 0) {
    ::sodium_free(secret);
    return HostFault("audit.log.key", "the log's key cannot be kept out of child processes");
  }
  ::crypto_sign_seed_keypair(public_half.data(), secret, seed);
  ::sodium_mprotect_readonly(secret);
  return secret;
}

}  // namespace

PublicKey PublicKey::FromBytes(const std::array<uint8_t, 32>& bytes) {
  PublicKey key;
  key.bytes_ = bytes;
  std::string named = std::string(kKeyName) + "\n" + kEd25519;
  named.append(BytesOf(bytes));
  std::array<unsigned char, crypto_hash_sha256_BYTES> hash;
  ::crypto_hash_sha256(hash.data(), RawBytes(named), named.size());
  key.id_ = HexOf({reinterpret_cast<const char*>(hash.data()), 4});
  return key;
}

Result<PublicKey> PublicKey::Parse(std::string_view text) {
  const Error error = Refused("audit.key", "not a public key of a log",
                              "it looks like coffer-log+1a2b3c4d+AT3k..., as in the file key.pub");
  text = Trimmed(text);
  const std::string prefix = std::string(kKeyName) + "+";
  if (!text.starts_with(prefix) || text.size() < prefix.size() + 9 ||
      text[prefix.size() + 8] != '+') {
    return error;
  }
  const std::string_view id = text.substr(prefix.size(), 8);
  const std::optional<std::string> bytes = FromBase64(text.substr(prefix.size() + 9));
  if (!bytes || bytes->size() != 33 || (*bytes)[0] != kEd25519) {
    return error;
  }
  PublicKey key = FromBytes(*HashFromBytes(std::string_view(*bytes).substr(1)));
  if (key.id() != id) {
    return Refused("audit.key", "the public key and its id do not belong together",
                   "copy it again from the file key.pub");
  }
  return key;
}

std::string PublicKey::Text() const {
  return std::string(kKeyName) + "+" + id_ + "+" +
         Base64Of(std::string(1, kEd25519).append(BytesOf(bytes_)));
}

std::string PublicKey::IdBytes() const { return *FromHex(id_); }

bool PublicKey::Verify(std::string_view bytes, std::string_view signature) const {
  return signature.size() == kSignatureBytes &&
         ::crypto_sign_verify_detached(RawBytes(signature), RawBytes(bytes), bytes.size(),
                                       bytes_.data()) == 0;
}

Result<Signer> Signer::FromSeed(std::string_view hex) {
  if (::sodium_init() < 0) {
    return HostFault("audit.log.key", "libsodium cannot start on this host");
  }
  std::optional<std::string> seed = FromHex(Trimmed(hex));
  if (!seed || seed->size() != crypto_sign_SEEDBYTES) {
    return HostFault("audit.log.key", "the log's key is not 64 hex digits",
                     "restore the file `key`, or move the whole log directory away");
  }
  std::array<uint8_t, 32> public_half;
  Result<unsigned char*> secret = SecretFrom(RawBytes(*seed), public_half);
  ::sodium_memzero(seed->data(), seed->size());
  if (!secret.ok()) {
    return secret.error();
  }
  return Signer(PublicKey::FromBytes(public_half), *secret);
}

Result<Signer> Signer::Create(std::string& hex) {
  if (::sodium_init() < 0) {
    return HostFault("audit.log.key", "libsodium cannot start on this host");
  }
  std::array<unsigned char, crypto_sign_SEEDBYTES> seed;
  ::randombytes_buf(seed.data(), seed.size());
  hex = HexOf({reinterpret_cast<const char*>(seed.data()), seed.size()});
  ::sodium_memzero(seed.data(), seed.size());
  return FromSeed(hex);
}

Signer::Signer(Signer&& other) noexcept
    : public_key_(std::move(other.public_key_)), secret_(std::exchange(other.secret_, nullptr)) {}
Signer& Signer::operator=(Signer&& other) noexcept {
  std::swap(public_key_, other.public_key_);
  std::swap(secret_, other.secret_);
  return *this;
}
Signer::~Signer() { ::sodium_free(secret_); }

std::string Signer::Sign(std::string_view bytes) const {
  std::string signature(kSignatureBytes, '\0');
  ::crypto_sign_detached(reinterpret_cast<unsigned char*>(signature.data()), nullptr,
                         RawBytes(bytes), bytes.size(), secret_);
  return signature;
}

}  // namespace coffer::audit
