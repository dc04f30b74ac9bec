// SPDX-License-Identifier: Apache-2.0
//
// How much memory the relay of a call with [calls] may use, in the daemon.
//
// The relay starts before the boundary has a cgroup, so the boundary's cap does not hold it. It bounds itself
// (cli/verb_inside_relay.h), and the host's budget counts that bound together with its call's memory (call/host_budget.h).
#pragma once

#include <cstdint>

namespace coffer::call {

inline constexpr uint64_t kRelayMemory = uint64_t{128} << 20;

}  // namespace coffer::call
