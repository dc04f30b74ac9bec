// SPDX-License-Identifier: Apache-2.0
//
// Everything that comes back from a runner, gathered until it is done.
//
// Output is bounded by the runner (the call's own cap); here it is bounded once more, because a runner may have been broken
// into.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "call/warden/launcher.h"
#include "call/warden/wire.h"

namespace coffer::call {

// What was collected of a call that ended. No report: its runner died, and how far the call came is not known.
struct Collected {
  std::string stdout_text;
  std::string stderr_text;
  std::optional<RunReport> report;
  std::optional<Error> stopped;  // it was killed from outside: why, and by whom
};

inline constexpr size_t kMaxCollected = 64 << 20;

enum class Stream { kOut, kErr };

struct CollectOptions {
  std::function<void(Stream, std::string_view)> sink;  // sees everything as it comes; may be empty
  int signals = -1;                                    // a signalfd
  std::function<void(int)> on_signal;
};

// Blocks until all three channels have ended.
Collected Collect(RunChannels channels, const CollectOptions& options);

// The report of a channel that has ended; nothing if it makes no sense.
std::optional<RunReport> ReadReport(const std::string& bytes);

}  // namespace coffer::call
