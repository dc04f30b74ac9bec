// SPDX-License-Identifier: Apache-2.0
//
// What the log holds: decisions (before anything happens), receipts (after), and events that belong to no call.
//
// Each becomes one line of JSON, keys sorted, no spaces: the leaf of the Merkle tree. The line is the record; it is
// never printed again from a struct, because its bytes are what is hashed. The writer of the log adds `seq` when it
// knows it. Empty strings are null. Nothing here scrubs: every reader of the log sees what goes in.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "store/call_identity.h"

namespace coffer::audit {

inline constexpr size_t kMaxLeafBytes = 65'535;

// A call may begin. It is on disk before the call has any effect.
struct DecisionRecord {
  Nanos at{0};  // 0: now
  store::CallIdentity identity;
  std::string tool_version;
  std::string manifest;
  std::string envelope;
  std::string effect;
  std::string args_hash;
  std::string shown;  // ShownHash of call_records.h
  std::string decision = "allow";
};

// A call has ended, or was refused.
struct ReceiptRecord {
  Nanos at{0};                   // 0: now
  store::CallIdentity identity;  // the record has its call, tenant, tool and trace; if it did not
                                 // run, and so has no decision, also who asked
  std::string outcome;
  std::string error_class;  // empty: no error
  bool ran = false;         // a boundary was launched
  std::string body;         // ReceiptBody::hash of seal.h
  bool recovered = false;   // written for a call whose process died
};

using EventValue = std::variant<int64_t, std::string>;

struct EventRecord {
  Nanos at{0};  // 0: now
  std::string tenant;
  std::string name;                                        // "switch.on"
  std::vector<std::pair<std::string, EventValue>> detail;  // names: a-z 0-9 _ . only
};

// A leaf that waits for its place: the line is before + seq + after.
struct LeafText {
  std::string before;
  std::string after;
  std::string Line(uint64_t seq) const { return before + std::to_string(seq) + after; }
};

// Refuses what would be longer than a leaf may be. Invalid UTF-8 becomes U+FFFD.
Result<LeafText> FormatLeaf(const DecisionRecord& record);
Result<LeafText> FormatLeaf(const ReceiptRecord& record);
Result<LeafText> FormatLeaf(const EventRecord& record);

}  // namespace coffer::audit
