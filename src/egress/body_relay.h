// SPDX-License-Identifier: Apache-2.0
//
// Carries the body of one HTTP message from one side to the other, framed anew: a chunked body is taken apart and put
// together again, so that no byte outside the body that was announced ever goes through.
#pragma once

#include "egress/buffered_stream.h"
#include "egress/watchdog.h"
#include "egress/watched_values.h"
#include "net/http_head.h"

namespace coffer::egress {

enum class BodyEnd {
  kWhole,
  kSourceBroken,  // it ended early, or its chunks are not chunks
  kTargetGone,
  kValueFound,  // it holds a value that must never leave; nothing of the value went on
};

// Ends if no byte moves for `idle`. `as` is how the target is told where it ends: kChunked, kLength
// for the same length, or kUntilClose for bare bytes. `watched` looks at every byte before it goes on; null: no value is
// looked for.
net::Task<BodyEnd> RelayBody(BufferedStream& from, const net::HttpBody& body, BufferedStream& to,
                             net::HttpBody::Kind as, Watchdog& watchdog, std::chrono::seconds idle,
                             WatchedStream* watched = nullptr);

}  // namespace coffer::egress
