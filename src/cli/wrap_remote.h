// SPDX-License-Identifier: Apache-2.0
//
// The flags of `coffer mcp wrap --url`: where a remote MCP server is, what is sent to it as a
// credential, and the words of `coffer run` for the bridge to it (remote_bridge.h).
//
// The boundary of the bridge reaches that URL and nothing else. A credential comes from a file or a
// variable, never from a word of the command line, and goes over TLS only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "call/verb_flags.h"
#include "cli/remote_place.h"

namespace coffer::cli {

struct RemoteServer {
  RemotePlace place;
  std::string name;                // for its tools, if the caller names none
  std::vector<std::string> flags;  // of `coffer run`
  std::vector<std::string> command;
};

// `run_flags` are the caller's; only those that say how the server is reached may be there.
Result<RemoteServer> ReadRemoteServer(const call::VerbFlags& flags,
                                      const std::vector<std::string_view>& run_flags);

}  // namespace coffer::cli
