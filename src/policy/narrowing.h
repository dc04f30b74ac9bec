// SPDX-License-Identifier: Apache-2.0
//
// A call inside a call never has more than the outer call: the effective envelope is the
// intersection along the chain.
//
// Intersect is never wider than either side; Covers says so in terms of what can be touched: host
// paths, limits, runtimes, hosts, system calls, layers. How things are arranged inside (working
// directory, variables, mount points) is the child's own and is no permission. What two envelopes
// cannot have in common, such as a runtime, is a refusal, not an empty grant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/envelope.h"

namespace coffer::policy {

// Refused if there is no runtime in common, or if one side has an imported seccomp profile and the other a different
// one that is not compat: one filter cannot be both.
Result<Envelope> Intersect(const Envelope& parent, const Envelope& child);

// Of the mounts of `child`, the places inside of those that are not in `both`, its intersection with a parent, at all.
std::vector<std::string> LostMounts(const Envelope& child, const Envelope& both);

// True if everything that `inner` allows is allowed by `outer`.
bool Covers(const Envelope& outer, const Envelope& inner);

// The names of the limits in which `asked` is above `most`.
std::vector<std::string_view> LimitsAbove(const Limits& most, const Limits& asked);

// What makes `inner` wider than `outer`, one line each; empty if Covers.
std::vector<std::string> WiderThan(const Envelope& outer, const Envelope& inner);

}  // namespace coffer::policy
