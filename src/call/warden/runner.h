// SPDX-License-Identifier: Apache-2.0
//
// A runner: a process that supervises one boundary for another process, and reports how it ended.
#pragma once

#include "call/run/run_request.h"
#include "call/warden/wire.h"

namespace coffer::call {

// In a fresh child of `parent`: dies with it, takes the three descriptors as stdio. False if it
// cannot, or if `parent` is gone already.
[[nodiscard]] bool BecomeRunner(int in, int out, int err, int parent);

// Runs the call and writes its report, in the operator's words: the ladder takes the host's paths out of the answer.
[[noreturn]] void RunAndReport(RunRequest request, int report);

// For a call that never ran.
RunReport RefusalReport(const Error& error);

// How long the sender waits for a peer that does not read. The warden does not wait; a runner waits some seconds.
enum class Patience : uint8_t { kNone, kSome };
// `socket` is a unix stream socket. A peer that is gone, or does not read in time, loses the
// report. No signal is raised.
void SendReport(int socket, const RunReport& report, Patience patience);

}  // namespace coffer::call
