// SPDX-License-Identifier: Apache-2.0
//
// The events of a call, as a client streams them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace coffer::gateway {

// seq starts at 1 and grows by one; it is SSE's event id. The service keeps a bounded tail per call.
struct CallEvent {
  enum class Kind { kState, kStdout, kStderr };
  uint64_t seq = 0;
  Kind kind = Kind::kState;
  std::string
      data;  // bytes of the output, or for kState a word: queued | gated | running | finished
};

struct EventBatch {
  std::vector<CallEvent> events;
  bool gap = false;       // events between `after` and the first of these are no longer kept
  bool finished = false;  // nothing will follow these
  bool ended = false;     // the call has ended, though more of its events may follow
};

// A call that has ended is part of the record, which a stopped agent may read.
enum class Watched { kRunning, kEnded };

}  // namespace coffer::gateway
