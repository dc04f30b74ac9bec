// SPDX-License-Identifier: Apache-2.0
//
// Writing to a descriptor that the caller gave us: a pipe, a terminal, a socket.
//
// Its reader may be slow, or may never read. sys::WriteAll waits for such a reader for ever, and
// while a call runs SIGTERM is blocked, so nothing ends that wait. Here the wait has a bound, and a
// signal ends it. A regular file never makes its writer wait and is simply written.
#pragma once

#include <chrono>
#include <string_view>

#include "base/result.h"

namespace coffer::sys {

struct WriteWait {
  // How long one wait may take; anything the reader takes begins a new one. Negative: no bound.
  std::chrono::milliseconds limit = std::chrono::seconds(30);
  // A descriptor, such as a signalfd, that ends the wait when it is readable. Without one, SIGINT,
  // SIGTERM, SIGHUP and SIGQUIT are let through while it waits, also where they are blocked, and do
  // what they do by default.
  int wake = -1;
};

// Writes all of `data`. Fails with ETIMEDOUT when nothing was taken within the bound, with EINTR
// when `wake` was readable; part of `data` may have been written then.
Status WritePatiently(int fd, std::string_view data, WriteWait wait = {});

}  // namespace coffer::sys
