// SPDX-License-Identifier: Apache-2.0
//
// What a request asks for beside its arguments: smaller limits than the manifest's, no network, or
// to run in the background.
//
// Nothing here widens a call. A limit above the manifest's is refused with the bound, never cut
// silently; a process in the background has the time that [background] gives instead of limits.wall
// and limits.cpu.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "call/run/run_request.h"
#include "call/tool_call.h"
#include "policy/tool.h"

namespace coffer::call {

// `run` as the manifest makes it becomes what the request asks for. Refused: policy.background, policy.ports,
// policy.limits.
Status ApplyTerms(const policy::Tool& tool, const ToolRequest& request, RunRequest& run);

// {"memory": "64MiB", "wall": "5s", "processes": 4}: sizes, durations and counts as in a manifest.
// Every mistake is named.
Result<policy::Limits> NarrowLimits(const policy::Limits& most, std::string_view asked_json);

}  // namespace coffer::call
