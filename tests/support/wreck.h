// SPDX-License-Identifier: Apache-2.0
//
// What a killed process left in its state directory, read from a copy before anybody has recovered it: how far up the
// ladder each call had come, by what the store and the log say.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/support/run.h"

namespace coffer::test {

// The rungs of the ladder that exist (call/ladder.h), told apart by what is on disk and by which processes there were.
// scan, gate, lease and inspect have no surface yet: a manifest that asks for one does not load.
enum class Rung : unsigned {
  kAdmit,     // the store does not know the call
  kEvaluate,  // admitted; the log knows nothing of it
  kRecord,    // the decision is in the log; the store has not started it
  kLaunch,    // started; the command has not
  kWatch,     // the command runs in its boundary
  kSettle,    // the boundary is gone; the log has no receipt
  kSeal,      // the receipt is in the log; the store has not ended it
  kAnswer,    // the call has ended in the store
};
inline constexpr unsigned kRungs = 8;
inline constexpr const char* kRungNames[kRungs] = {"admit", "evaluate", "record", "launch",
                                                   "watch", "settle",   "seal",   "answer"};

struct LeftCall {
  std::string id;
  std::string key;  // idempotency key
  std::string state;
  bool decision = false;  // in the log, under a checkpoint
  bool receipt = false;
  // Without what only processes tell: kLaunch stands for launch, watch and settle.
  Rung OnDisk() const;
};

// All calls of the store, in no order. A failure is a test's failure.
std::vector<LeftCall> ReadWreck(const std::string& state);
std::optional<LeftCall> FindLeft(const std::vector<LeftCall>& wreck, const std::string& key);

// As if a call had been made and had ended `days` ago; nobody else may use the store. Its id tells its time, so it has a
// new one, which is returned. The log still has the old one: such a state directory does not verify.
std::string AgeCall(const std::string& state, const std::string& id, int days);

}  // namespace coffer::test
