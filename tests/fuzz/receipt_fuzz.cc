// SPDX-License-Identifier: Apache-2.0
//
// Any text as a receipt: no crash, and what is accepted is stable: Parse, Format, Parse, Format give the same bytes. What is hashed
// of it when it is sealed, made from its text, is what a verifier makes of it through values.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "audit/receipt.h"
#include "audit/seal.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace coffer::audit;
  const auto first = ParseReceipt({reinterpret_cast<const char*>(data), size});
  if (!first.ok()) {
    return 0;
  }
  const std::string text = FormatReceipt(*first);
  const auto second = ParseReceipt(text);
  if (!second.ok()) {
    std::fprintf(stderr, "refuses its own: %s\n%s", second.error().message.c_str(), text.c_str());
    std::abort();
  }
  const std::string again = FormatReceipt(*second);
  if (again != text) {
    std::fprintf(stderr, "not stable:\n%s\n%s", text.c_str(), again.c_str());
    std::abort();
  }
  const auto body = MakeBody(text);
  const auto canonical = CanonicalReceipt(text);
  if (!body.ok() || !canonical.ok() || body->canonical != *canonical) {
    std::fprintf(stderr, "another canonical form:\n%s", text.c_str());
    std::abort();
  }
  return 0;
}
