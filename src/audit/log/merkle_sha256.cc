// SPDX-License-Identifier: Apache-2.0
#include "audit/log/merkle_sha256.h"

#include <sodium/crypto_hash_sha256.h>

#include <algorithm>
#include <cstring>

#if defined(__aarch64__)
#include <arm_neon.h>
#include <sys/auxv.h>
#endif

namespace coffer::audit {
namespace {

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

Hash SodiumSha256(std::string_view prefix, std::string_view bytes) {
  crypto_hash_sha256_state state;
  ::crypto_hash_sha256_init(&state);
  ::crypto_hash_sha256_update(&state, Bytes(prefix), prefix.size());
  ::crypto_hash_sha256_update(&state, Bytes(bytes), bytes.size());
  Hash hash;
  ::crypto_hash_sha256_final(&state, hash.data());
  return hash;
}

#if defined(__aarch64__)

constexpr size_t kBlock = 64;

// FIPS 180-4, 4.2.2 and 5.3.3.
alignas(16) constexpr uint32_t kRounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
constexpr uint32_t kStart[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

struct State {
  uint32x4_t abcd;
  uint32x4_t efgh;
};

// Sixteen times four rounds; the schedule runs four words ahead.
__attribute__((target("+crypto"))) void Compress(State& state, const unsigned char* data,
                                                 size_t blocks) {
  for (; blocks > 0; --blocks, data += kBlock) {
    const State before = state;
    uint32x4_t words[4];
    for (size_t i = 0; i < 4; ++i) {
      words[i] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(data + 16 * i)));
    }
#pragma GCC unroll 16
    for (size_t group = 0; group < 16; ++group) {
      const uint32x4_t keyed = vaddq_u32(words[group % 4], vld1q_u32(kRounds + 4 * group));
      if (group < 12) {
        words[group % 4] =
            vsha256su1q_u32(vsha256su0q_u32(words[group % 4], words[(group + 1) % 4]),
                            words[(group + 2) % 4], words[(group + 3) % 4]);
      }
      const uint32x4_t abcd = state.abcd;
      state.abcd = vsha256hq_u32(abcd, state.efgh, keyed);
      state.efgh = vsha256h2q_u32(state.efgh, abcd, keyed);
    }
    state.abcd = vaddq_u32(state.abcd, before.abcd);
    state.efgh = vaddq_u32(state.efgh, before.efgh);
  }
}

__attribute__((target("+crypto"))) Hash ProcessorSha256(std::string_view prefix,
                                                        std::string_view bytes) {
  State state{vld1q_u32(kStart), vld1q_u32(kStart + 4)};
  const uint64_t length = prefix.size() + bytes.size();
  unsigned char block[2 * kBlock];
  size_t held = prefix.size();
  if (held > 0) {  // fill the block that the prefix begins
    const size_t more = std::min(bytes.size(), kBlock - held);
    std::copy_n(Bytes(prefix), held, block);
    std::copy_n(Bytes(bytes), more, block + held);
    bytes.remove_prefix(more);
    held += more;
    if (held == kBlock) {
      Compress(state, block, 1);
      held = 0;
    }
  }
  if (held == 0) {
    Compress(state, Bytes(bytes), bytes.size() / kBlock);
    bytes.remove_prefix(bytes.size() / kBlock * kBlock);
    std::copy_n(Bytes(bytes), bytes.size(), block);
    held = bytes.size();
  }
  const size_t total = held + 9 <= kBlock ? kBlock : 2 * kBlock;
  block[held] = 0x80;
  std::memset(block + held + 1, 0, total - held - 9);
  for (size_t i = 0; i < 8; ++i) {
    block[total - 8 + i] = static_cast<unsigned char>(length * 8 >> (56 - 8 * i));
  }
  Compress(state, block, total / kBlock);
  Hash hash;
  vst1q_u8(hash.data(), vrev32q_u8(vreinterpretq_u8_u32(state.abcd)));
  vst1q_u8(hash.data() + 16, vrev32q_u8(vreinterpretq_u8_u32(state.efgh)));
  return hash;
}

bool Usable() {
  if ((::getauxval(AT_HWCAP) & HWCAP_SHA2) == 0) {
    return false;
  }
  unsigned char text[300];
  for (size_t i = 0; i < sizeof(text); ++i) {
    text[i] = static_cast<unsigned char>(i * 31);
  }
  const std::string_view bytes(reinterpret_cast<const char*>(text), sizeof(text));
  return ProcessorSha256("x", bytes) == SodiumSha256("x", bytes);
}

#endif

}  // namespace

#if defined(__aarch64__)

bool HasFastSha256() {
  static const bool usable = Usable();
  return usable;
}

Hash FastSha256(std::string_view prefix, std::string_view bytes) {
  return HasFastSha256() ? ProcessorSha256(prefix, bytes) : SodiumSha256(prefix, bytes);
}

#else

bool HasFastSha256() { return false; }

Hash FastSha256(std::string_view prefix, std::string_view bytes) {
  return SodiumSha256(prefix, bytes);
}

#endif

}  // namespace coffer::audit
