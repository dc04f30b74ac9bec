// SPDX-License-Identifier: Apache-2.0
//
// The process that serves tools to the command of a run (`coffer run --tools`). Started by tools_process.h, never by hand.
//
// It speaks with hostile code over one listening socket, and runs each call as a child of the run: on the ladder, with the
// intersection of both envelopes and what is left of the run's budgets. It says 'R' on its channel when it is ready, or 'E'
// (refused) or 'F' (failed) with a class, a message and a hint, a line each; then it gets the listener. When the channel ends, so do its calls, each with a sealed
// receipt, and the process.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace coffer::cli {

inline constexpr const char* kInsideVerb = "inside-tools";
// Descriptors it is started with: a seqpacket socket, and a sealed memory file with the run's envelope.
inline constexpr int kInsideControl = 3;
inline constexpr int kInsideEnvelope = 4;
inline constexpr size_t kMostInsideError = 4096;

int InsideToolsVerb(std::span<const std::string_view> words);

}  // namespace coffer::cli
