// SPDX-License-Identifier: Apache-2.0
#include "audit/log/verify_log_calls.h"

#include <sodium/crypto_shorthash_siphash24.h>
#include <sodium/randombytes.h>

#include <cstring>
#include <string>

namespace coffer::audit {

CallBook::CallBook() { ::randombytes_buf(key_.data(), key_.size()); }

CallBook::Id CallBook::IdOf(const LeafFacts& facts) const {
  std::string text(facts.tenant);
  text += '\n';  // in neither: a leaf has no newline
  text += facts.call;
  std::array<unsigned char, crypto_shorthash_siphashx24_BYTES> hash;
  ::crypto_shorthash_siphashx24(hash.data(), reinterpret_cast<const unsigned char*>(text.data()),
                                text.size(), key_.data());
  Id id;
  std::memcpy(&id.high, hash.data(), 8);
  std::memcpy(&id.low, hash.data() + 8, 8);
  return id;
}

const char* CallBook::See(const LeafFacts& facts) {
  repeated_ = ended_before_ = false;
  if (facts.kind == LeafFacts::Kind::kEvent) {
    return nullptr;
  }
  Seen& seen = calls_[IdOf(facts)];
  ended_before_ = seen.ended;
  if (facts.kind == LeafFacts::Kind::kDecision) {
    seen.decided = true;
    return nullptr;
  }
  if (seen.ended && !facts.recovered) {
    repeated_ = true;
    return "a second receipt";
  }
  seen.ended = true;
  return facts.ran && !seen.decided ? "it ran without a decision before it" : nullptr;
}

}  // namespace coffer::audit
