// SPDX-License-Identifier: Apache-2.0
//
// What the log has of a call before a receipt that recovery writes for it: its decision, and a
// receipt that the store never got.
//
// Recovery knows a call whose process died from its row, and a user who can write the database can
// write anything into a row. So a recovered receipt may say nothing that the call's earlier records
// say otherwise. Recovery asks before it seals (call/recorder.h), verification asks again
// (verify_store.h). A call without an earlier record is known from the store alone, and is told as such.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"
#include "base/result.h"

namespace coffer::audit {

struct CallRecords {
  std::string decision;  // the line; empty: none
  std::string receipt;   // of its first receipt
};
using CallRecordsByKey = std::unordered_map<std::string, CallRecords>;  // by CallKey
std::string CallKey(std::string_view tenant, std::string_view call);

// The time in an id (base/ids.h); the beginning of time for what is no such id.
Nanos IdTime(std::string_view id);

// Fills in the first records of each call that is sought. Reads lines of the first `end` bytes, where a
// batch ends, from there backwards; stops where everything is older than `since`.
Status ReadCallRecords(int records, uint64_t end, Nanos since, CallRecordsByKey& sought);

// What a decision says of the words that a receipt shows and the log does not have: a hash of the redacted arguments, as
// JSON, and of the reason.
std::string ShownHash(std::string_view args_redacted, std::string_view reason);

// What a recovered receipt, in canonical form, says otherwise than the records of its call before
// it, by their members' names: "agent, tool". Empty: nothing.
std::string Contradictions(const CallRecords& before, std::string_view canonical, bool ran);

}  // namespace coffer::audit
