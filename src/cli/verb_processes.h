// SPDX-License-Identifier: Apache-2.0
//
// The part of `coffer sessions` that is about background processes: start, processes, log, signal, stop.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "call/verb_flags.h"
#include "cli/state.h"
#include "isolation/boundary.h"

namespace coffer::cli {

// The words after `start`: the session, the flags of `coffer run` and --port, the command. The exit status.
int StartVerb(std::span<const std::string_view> words, isolation::OwnWords own);

Result<std::string> ListProcesses(const call::VerbFlags& flags, State& state,
                                  const std::string& session);
// With --follow it prints what comes until the process has ended, and returns what is left.
Result<std::string> ReadProcessLog(const call::VerbFlags& flags, State& state,
                                   const std::string& session, const std::string& process);
Result<std::string> SignalProcess(State& state, const std::string& session,
                                  const std::string& process, const std::string& signal);
Result<std::string> StopProcess(State& state, const std::string& session,
                                const std::string& process);

}  // namespace coffer::cli
