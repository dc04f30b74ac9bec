// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as what the egress process, which reads hostile input, leaves for the supervisor: its record of a call. No crash,
// no more entries than bytes, and an entry that was read is written the same again.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "call/run/egress_messages.h"

namespace {

using namespace coffer;

void Demand(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "broken: %s\n", what);
    std::abort();
  }
}

// A record with one entry whose texts are `bytes`, and one of its own bytes changed.
std::string Damaged(std::string_view bytes) {
  call::EgressEntry entry;
  entry.host = bytes.substr(0, bytes.size() / 2);
  entry.path = bytes.substr(bytes.size() / 2);
  entry.allowed = bytes.size() % 2 == 0;
  std::string text = std::string(sizeof(call::EgressLogHead), '\0') + call::EncodeEntry(entry);
  if (bytes.size() > 2) {
    const auto byte = [&](size_t at) { return static_cast<unsigned char>(bytes[at]); };
    text[(byte(0) + size_t{256} * byte(1)) % text.size()] = bytes[2];
  }
  return text;
}

void CheckLog(std::string_view bytes) {
  const call::EgressLog log = call::DecodeLog(bytes);
  Demand(log.entries.size() <= bytes.size(), "entries out of nothing");
  for (const call::EgressEntry& entry : log.entries) {
    const std::string head(sizeof(call::EgressLogHead), '\0');
    const std::string once = call::EncodeEntry(entry);
    Demand(once.size() <= call::kMostEntryBytes, "an entry is too long");
    const call::EgressLog again = call::DecodeLog(head + once);
    Demand(!again.broken && again.entries.size() == 1, "we do not read what we write");
    Demand(call::EncodeEntry(again.entries[0]) == once, "an entry is not stable");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  CheckLog(bytes);
  CheckLog(Damaged(bytes));
  if (const auto order = call::DecodeOrder(bytes); order.ok()) {
    const auto again = call::DecodeOrder(call::EncodeOrder(*order));
    Demand(again.ok() && call::EncodeOrder(*again) == call::EncodeOrder(*order),
           "an order is not stable");
  }
  return 0;
}
