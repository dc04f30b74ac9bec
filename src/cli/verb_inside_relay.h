// SPDX-License-Identifier: Apache-2.0
//
// The relay: the process that reads what the program of a call with [calls] writes on the socket of
// its tools, in the daemon. Started by relay_process.h, never by hand.
//
// Neither the gateway, which holds every tenant's record, nor the warden, which is root, reads
// those bytes. The relay parses them as MCP, and sends frames of fixed shape to the gateway. It has
// the uid of the call's boundary, no capability, and no more than its sockets: a filter refuses
// every file, program, process and socket beside them. Its second descriptor (inside_control.h)
// leads to the gateway.
#pragma once

#include <span>
#include <string_view>

namespace coffer::cli {

inline constexpr const char* kRelayVerb = "inside-relay";

int InsideRelayVerb(std::span<const std::string_view> words);

}  // namespace coffer::cli
