// SPDX-License-Identifier: Apache-2.0
//
// The receivers of events, as the daemon was last configured, so that other processes on the same state directory (the
// command line) can leave in the outbox what the daemon has to send.
//
// The daemon replaces the list at every start; the others only read it. It holds names, never
// addresses or secrets. Where no daemon with receivers ever ran, the list is empty and nothing is
// put anywhere.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/store.h"
#include "store/tenant.h"

namespace coffer::store {

struct KnownReceiver {
  std::string name;                 // in the outbox
  std::vector<std::string> events;  // "call.finished", "alert.*"; empty: all

  bool Wants(std::string_view event) const;
};

// Committed when it returns.
Status KeepReceivers(Store& store, AllTenants, std::span<const KnownReceiver> receivers);
Result<std::vector<KnownReceiver>> ListReceivers(Store& store, AllTenants);

// "alert.*" stands for everything that begins with "alert.", "*" for everything.
bool MatchesEvent(std::string_view pattern, std::string_view event);

}  // namespace coffer::store
