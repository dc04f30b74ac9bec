// SPDX-License-Identifier: Apache-2.0
//
// The reason of a call: what the agent says it is for, in one line.
//
// It is written by a model, for people who read the record. Nothing decides by it: it is in no hash that tells requests
// apart, no rule sees it, and two calls that differ in their reasons alone get the same answer. What it may contain is
// bounded here, so that it can forge no line of a list and steer no terminal.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/result.h"

namespace coffer::policy {

inline constexpr size_t kMostReasonBytes = 1000;

// Refused unless it is UTF-8 in one line of at most kMostReasonBytes: no control characters (C0, DEL, C1), no line or
// paragraph separators, nothing that turns the direction of writing or is invisible. An empty one is none.
Status CheckReason(std::string_view reason);

}  // namespace coffer::policy
