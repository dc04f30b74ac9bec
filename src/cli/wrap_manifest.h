// SPDX-License-Identifier: Apache-2.0
//
// The boundary of a wrapped MCP server from a manifest, as words of `coffer run`: level, floor,
// system calls, limits, mounts, variables and runtimes.
//
// Schema, argv and examples of the manifest say nothing about a server and are not used; the
// command is that of the command line. The server lives as long as [background] says, or a day.
// What a flag of `coffer run` cannot say is refused, so the boundary is never wider than the
// manifest.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace coffer::cli {

// Refused if the file has a mistake, or asks for what a wrapped server cannot have.
Result<std::vector<std::string>> BoundaryWords(const std::string& file);

}  // namespace coffer::cli
