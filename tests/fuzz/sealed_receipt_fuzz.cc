// SPDX-License-Identifier: Apache-2.0
//
// Any text as a sealed receipt: no crash, the canonical form is stable, and nothing but the one receipt that was sealed
// with the key verifies.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "audit/log/encoding.h"
#include "audit/seal.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace coffer::audit;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // A key whose secret half signs nothing here.
  static const Signer signer = Signer::FromSeed(std::string(64, '7')).value();
  if (VerifyReceipt(text, signer.public_key()).ok()) {
    std::fprintf(stderr, "verifies\n");
    std::abort();
  }
  const auto canonical = CanonicalReceipt(text);
  if (canonical.ok()) {
    const auto again = CanonicalReceipt(*canonical);
    if (!again.ok() || *again != *canonical) {
      std::fprintf(stderr, "not stable: %s\n", canonical->c_str());
      std::abort();
    }
  }
  (void)PublicKey::Parse(text).ok();
  (void)FromBase64(text).has_value();
  return 0;
}
