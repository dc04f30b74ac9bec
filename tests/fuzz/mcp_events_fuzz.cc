// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the event stream of a remote MCP server. However they are cut into pieces, the same events come out, none of them
// longer than the bound, and an id that is sent back has no character that ends a field.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/mcp/event_reader.h"

namespace {

constexpr size_t kMost = 64;

struct Seen {
  std::vector<std::string> events;
  std::string last_id;
  bool whole = true;
  bool operator==(const Seen&) const = default;
};

Seen Feed(std::string_view bytes, size_t piece) {
  coffer::gateway::EventReader reader(kMost);
  Seen seen;
  for (size_t at = 0; at < bytes.size() && seen.whole; at += piece) {
    seen.whole = reader.Feed(bytes.substr(at, piece), [&](const std::string& data) {
      if (data.empty() || data.size() > kMost * 2) {
        std::abort();
      }
      seen.events.push_back(data);
    });
  }
  seen.last_id = reader.last_id();
  if (!std::all_of(seen.last_id.begin(), seen.last_id.end(),
                   [](char c) { return c > 0x20 && c < 0x7f; })) {
    std::abort();
  }
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Seen all = Feed(bytes, std::max<size_t>(size, 1));
  if (all != Feed(bytes, 1) || all != Feed(bytes, 3)) {
    std::abort();
  }
  return 0;
}
