// SPDX-License-Identifier: Apache-2.0
//
// Which calls of a log have a decision and a receipt: nothing runs without a decision before it,
// and each call ends once.
//
// A call is kept as 128 bits of a keyed hash of tenant and id (24 bytes for each, not the text), so
// a million calls take some 50 MB. Two different calls that look like one have a chance of about
// 2^-88 then.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

#include "audit/log/records_scan.h"

namespace coffer::audit {

class CallBook {
 public:
  CallBook();
  // Null, or what is wrong with the record.
  const char* See(const LeafFacts& facts);
  // What See found last is a second receipt.
  bool repeated() const { return repeated_; }
  // The call of what See saw last had a receipt before.
  bool ended_before() const { return ended_before_; }

 private:
  struct Id {
    uint64_t high = 0;
    uint64_t low = 0;
    bool operator==(const Id&) const = default;
  };
  struct IdHash {
    size_t operator()(const Id& id) const { return id.low; }
  };
  struct Seen {
    bool decided = false;
    bool ended = false;
  };
  Id IdOf(const LeafFacts& facts) const;

  std::array<unsigned char, 16> key_;
  std::unordered_map<Id, Seen, IdHash> calls_;
  bool repeated_ = false;
  bool ended_before_ = false;
};

}  // namespace coffer::audit
