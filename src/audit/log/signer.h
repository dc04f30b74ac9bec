// SPDX-License-Identifier: Apache-2.0
//
// The log's Ed25519 key: the private half signs, the public half may be given away.
//
// A public key is written as C2SP signed notes write it: "coffer-log+<key id, 8 hex digits>+<base64 of 0x01 and the 32
// bytes>". The key id is the first four bytes of SHA-256("coffer-log\n" 0x01 key). Who can read the secret half can
// rewrite the log from the newest checkpoint that is kept elsewhere; nothing here prevents that.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace coffer::audit {

inline constexpr std::string_view kKeyName = "coffer-log";
inline constexpr size_t kSignatureBytes = 64;

class PublicKey {
 public:
  // Reads the text form; surrounding white space is allowed, anything else is refused.
  static Result<PublicKey> Parse(std::string_view text);
  static PublicKey FromBytes(const std::array<uint8_t, 32>& bytes);

  std::string Text() const;                      // without a newline
  const std::string& id() const { return id_; }  // 8 hex digits
  std::string IdBytes() const;                   // the same as 4 bytes
  bool Verify(std::string_view bytes, std::string_view signature) const;
  bool operator==(const PublicKey& other) const { return bytes_ == other.bytes_; }

 private:
  PublicKey() = default;
  std::array<uint8_t, 32> bytes_{};
  std::string id_;
};

// Owns the secret half; its memory is locked and zeroed.
class Signer {
 public:
  // 64 hex digits, as in the file `key`.
  static Result<Signer> FromSeed(std::string_view hex);
  // A new one, and the text for its file.
  static Result<Signer> Create(std::string& hex);
  Signer(Signer&&) noexcept;
  Signer& operator=(Signer&&) noexcept;
  ~Signer();

  const PublicKey& public_key() const { return public_key_; }
  std::string Sign(std::string_view bytes) const;  // kSignatureBytes

 private:
  Signer(PublicKey key, unsigned char* secret) : public_key_(std::move(key)), secret_(secret) {}
  PublicKey public_key_;
  unsigned char* secret_ = nullptr;  // sodium_malloc
};

}  // namespace coffer::audit
