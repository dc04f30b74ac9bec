// SPDX-License-Identifier: Apache-2.0
//
// The process that serves tools to the command of a run (`coffer run --tools`). Started by
// tools_process.h, never by hand.
//
// It speaks with hostile code over one listening socket, and runs each call as a child of the run:
// on the ladder, with the intersection of both envelopes and what is left of the run's budgets. Its
// second descriptor (inside_control.h) is a sealed memory file with the run's envelope. When its
// channel ends, so do its calls, each with a sealed receipt, and the process.
#pragma once

#include <span>
#include <string_view>

namespace coffer::cli {

inline constexpr const char* kInsideVerb = "inside-tools";

int InsideToolsVerb(std::span<const std::string_view> words);

}  // namespace coffer::cli
