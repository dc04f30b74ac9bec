// SPDX-License-Identifier: Apache-2.0
//
// Reads a leaf as strictly as it is written, in one pass and without memory: a verifier looks at millions of them.
//
// The grammar is smaller than JSON (docs/AUDIT_LOG.md): no spaces, members sorted, names of a-z 0-9 _ . only, integers,
// strings with the shortest escapes and valid UTF-8, one object inside (`detail`). So a record has one spelling.
#pragma once

#include <cstdint>
#include <string_view>

namespace coffer::audit {

// What a verifier knows of a record. The views point into the line; JSON escapes in them are not resolved.
struct LeafFacts {
  enum class Kind : uint8_t { kDecision, kReceipt, kEvent };
  Kind kind = Kind::kEvent;
  std::string_view line;  // all of it
  uint64_t seq = 0;
  int64_t at = 0;
  std::string_view tenant;   // empty: null
  std::string_view call;     // decision, receipt
  std::string_view body;     // receipt; empty: null
  std::string_view outcome;  // receipt
  std::string_view name;     // event
  std::string_view detail;   // event, as JSON
  bool ran = false;
  bool recovered = false;
  bool ended_before = false;  // filled in by VerifyLog: the call has an earlier receipt
};

// Null if the line is a leaf; otherwise what is wrong with it, and `facts` is not to be used.
const char* ScanLeaf(std::string_view line, LeafFacts& facts);

}  // namespace coffer::audit
