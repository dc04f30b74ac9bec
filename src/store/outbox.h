// SPDX-License-Identifier: Apache-2.0
//
// The outbox: pending notifications, one row per receiver, until the receiver has it.
//
// The row about a call's end is written in the transaction that ends the call (CallEnd::send_to),
// so it is exactly as durable as the end itself: whatever was acknowledged will be sent, at least
// once, also after a kill or a loss of power. It costs the call no fsync of its own. A row holds a
// reference ({"call": ID}) or a small event, never a receipt. Removing and postponing are only
// committed: what a loss of power undoes is sent once more. The table is bounded by TrimOutbox,
// which its reader calls; the oldest go first. One reader at a time is expected; two would send
// things twice.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "store/store.h"
#include "store/tenant.h"

namespace coffer::store {

// More rows than this are not kept.
inline constexpr uint64_t kMostOutboxRows = 100'000;

struct OutboxRow {
  int64_t id = 0;
  std::string tenant;  // empty: of the whole daemon
  std::string body;    // JSON
  Nanos created_at{0};
  uint32_t attempts = 0;
};

// One row for each of `receivers`, due at once. `tenant` may be empty: of the whole daemon.
Status AddToOutbox(Store& store, std::span<const std::string> receivers, std::string_view tenant,
                   std::string_view body, Durability durability = Durability::kOnDisk);
// What a row says about the end of a call.
std::string OutboxCallBody(std::string_view call_id);

// Rows of one receiver that are due, those that waited longest first.
Result<std::vector<OutboxRow>> ListDue(Store& store, AllTenants, std::string_view receiver,
                                       uint32_t limit);
Status RemoveSent(Store& store, AllTenants, std::span<const int64_t> ids);
// Not before `until`, and one attempt more.
Status Postpone(Store& store, AllTenants, std::span<const int64_t> ids, Nanos until);

// Removes the oldest rows beyond `most`; how many. Cheap while there are fewer.
Result<uint64_t> TrimOutbox(Store& store, AllTenants, uint64_t most);
// Removes the rows of every receiver that is not among `receivers`; how many.
Result<uint64_t> ForgetOtherReceivers(Store& store, AllTenants,
                                      std::span<const std::string> receivers);

}  // namespace coffer::store
