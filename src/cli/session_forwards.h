// SPDX-License-Identifier: Apache-2.0
//
// The ports of a session's background processes, for a call of the command line in that session.
//
// Each running process with ports is asked for a channel (process_control.h), and the call's
// supervisor sends its listeners through it (call/run/port_forwarder.h). Only calls that see the
// session's files get this. The caller of these functions has checked that the session is the
// command line's own.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "call/run/run_request.h"
#include "cli/process_places.h"

namespace coffer::cli {

// As many as the daemon has.
inline constexpr size_t kMostProcesses = 8;       // of one session that run
inline constexpr size_t kMostReachable = 4;       // of those, with ports
inline constexpr size_t kMostProcessesKept = 32;  // of one session, with those that ended

// Adds to request.forwards and request.port_channels; nothing for a call that does not see the
// session's files, or has no network namespace of its own. The channels, which must stay open until
// the request is launched.
Result<std::vector<UniqueFd>> ForwardSessionPorts(const std::string& state,
                                                  const std::string& session,
                                                  call::RunRequest& request);

// Refused if the session has too many processes, or one of the ports already. Removes the oldest that have ended.
// The session is locked.
Status MakeRoomFor(const ProcessPlaces& places, const std::string& session,
                   const std::vector<uint16_t>& ports);

}  // namespace coffer::cli
