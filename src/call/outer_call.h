// SPDX-License-Identifier: Apache-2.0
//
// The call that makes a call through the socket of its tools: its remaining budget, how much a call counts, and the
// errors that the code inside sees. With a daemon (daemon/calls_inside.h) and without one (cli/inside_calls.h).
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "call/tool_call.h"
#include "call/warden/collect.h"
#include "policy/call_budget.h"
#include "policy/envelope.h"
#include "policy/tool.h"

namespace coffer::call {

// Goes up the ladder with a call, because it was worked out elsewhere. Its id is the parent's of the call.
struct OuterCall {
  policy::Envelope envelope;   // the most that the call may have
  std::optional<Error> spent;  // nothing is left; then the call is refused with this
  uint64_t tool_calls = 0;  // how many calls the call may make itself, if its manifest has [calls]
  bool offered = true;      // false: the outer call's manifest does not name the tool
};

inline constexpr size_t kInnerAtOnce = 4;
inline constexpr size_t kMostInnerWaiting = 64;
inline constexpr uint64_t kMostInnerOutput = 4ULL << 20;  // of one call, whatever its limits say

bool CallsTools(const policy::Tool& tool);

// A tool that calls tools itself has its CPU time and memory once more for them. So it is given
// half of what is left, and counts twice.
policy::Limits CountedLimits(policy::Limits limits, const policy::Tool& tool);

// The CPU time that a call used itself, as far as that is known, without the CPU time of the calls that it made.
Nanos CountedCpu(const Collected& collected, const policy::Tool& tool,
                 const policy::Limits& granted);

// What a call with `outer` has left for one that begins now. `halves`: for a tool that calls tools
// itself. kRefused, class limit.*: nothing.
Result<policy::Envelope> LeftForInner(const policy::Envelope& outer,
                                      const policy::CallBudget& budget, Nanos now, bool halves);

// Why a mount or a boundary failed speaks of the host: where a link leads, whether a file is there.
// The record keeps that; the code inside, which may have made the link, is told only that it
// failed.
ToolReply WithoutHost(ToolReply reply);

}  // namespace coffer::call
