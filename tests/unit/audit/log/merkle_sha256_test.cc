// SPDX-License-Identifier: Apache-2.0
//
// The processor's SHA-256 is libsodium's, for every length around the borders of its blocks and every prefix.
#include "audit/log/merkle_sha256.h"

#include <gtest/gtest.h>
#include <sodium/crypto_hash_sha256.h>

namespace coffer::audit {
namespace {

Hash Sodium(const std::string& text) {
  Hash hash;
  ::crypto_hash_sha256(hash.data(), reinterpret_cast<const unsigned char*>(text.data()),
                       text.size());
  return hash;
}

TEST(MerkleSha256Test, IsLibsodiums) {
  std::string text;
  for (int i = 0; i < 70'000; ++i) {
    text += static_cast<char>(i * 7 + i / 13);
  }
  const std::string_view view = text;
  for (size_t prefix = 0; prefix <= 64; ++prefix) {
    for (size_t length = 0; length < 200; ++length) {
      const Hash fast = FastSha256(view.substr(500, prefix), view.substr(3, length));
      ASSERT_EQ(HexOf(fast), HexOf(Sodium(text.substr(500, prefix) + text.substr(3, length))))
          << prefix << " " << length;
    }
  }
  EXPECT_EQ(FastSha256("\1", view), Sodium("\1" + text));
  EXPECT_EQ(FastSha256({}, {}), Sodium(""));
  std::printf("processor's own: %s\n", HasFastSha256() ? "yes" : "no");
}

}  // namespace
}  // namespace coffer::audit
