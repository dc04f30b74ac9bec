// SPDX-License-Identifier: Apache-2.0
//
// How a process that serves tools inside a call and the supervisor that started it
// (serving_process.h) talk: on one seqpacket socket. The process says 'R' when it is ready, or 'E'
// (refused) or 'F' (failed) with a class, a message and a hint, a line each; then it gets the
// listener. When the channel ends, it ends.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace coffer::cli {

// Descriptors that such a process is started with: the channel, and one more that its verb names.
inline constexpr int kInsideControl = 3;
inline constexpr int kInsideSecond = 4;
inline constexpr size_t kMostInsideError = 4096;

// True if this process was started as it must be. Neither descriptor goes on to what it starts.
bool TakeInsidePlaces();

Status SayInsideReady();
void SayInsideFailed(const Error& error);

// Waits for it. No descriptor: the call has ended before its command began.
Result<UniqueFd> ReceiveInsideListener();

}  // namespace coffer::cli
