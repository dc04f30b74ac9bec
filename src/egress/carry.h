// SPDX-License-Identifier: Apache-2.0
//
// Carries bytes between two sides without parsing them, both ways, until they have ended.
#pragma once

#include <chrono>
#include <string>

#include "egress/buffered_stream.h"
#include "egress/watchdog.h"
#include "net/splice_pipe.h"

namespace coffer::egress {

// Until both ends have ended, or none has moved for `idle`; for kHalfOpenTime if one end has. What
// is in the buffers goes first. A direction with much to carry has a pipe of `pipes` if there is
// one left; otherwise its bytes are copied. The answer: why it was ended before both ends had, in
// one line; "" otherwise.
net::Task<std::string> CarryBothWays(BufferedStream& a, BufferedStream& b, Watchdog& watchdog,
                                     std::chrono::seconds idle, net::PipeAllowance& pipes);

}  // namespace coffer::egress
