// SPDX-License-Identifier: Apache-2.0
//
// The definitions of tools of wrapped MCP servers: those that were accepted, and those that were seen last.
//
// All that a server lists when it is first wrapped is accepted. From then on a tool whose
// definition is another one, or that is new, is blocked until a person has accepted it
// (`coffer mcp review`): a server that was harmless when it was reviewed cannot become another one.
// One file for each name of a server, in `mcp` of the state directory, which belongs to the caller
// alone.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace coffer::cli {

using Definitions =
    std::map<std::string, std::string>;  // by the name that agents use; JSON with sorted keys

struct ServerPins {
  Definitions accepted;
  Definitions seen;
};

// A difference between the accepted definitions and those last seen.
struct PinChange {
  std::string tool;
  std::optional<std::string> before;  // none: it is new
  std::string now;
};
std::vector<PinChange> ChangesOf(const ServerPins& pins);

// A person accepts by this digest: of the definitions last seen, which the review showed.
std::string DigestOf(const ServerPins& pins);

class ToolPins {
 public:
  static Result<ToolPins> Open(const std::string& state_directory);

  // The names that have a file, sorted.
  Result<std::vector<std::string>> Names() const;
  // Nothing: no such server was wrapped yet.
  Result<std::optional<ServerPins>> Read(const std::string& name) const;
  // Keeps the definitions seen. The first time all of them are accepted.
  Result<ServerPins> See(const std::string& name, const Definitions& seen) const;
  // Accepts the definitions last seen, if `digest` is still theirs.
  Status Accept(const std::string& name, const std::string& digest) const;

 private:
  explicit ToolPins(UniqueFd directory) : directory_(std::move(directory)) {}
  Result<UniqueFd> Lock() const;
  Status Write(const std::string& name, const ServerPins& pins) const;
  UniqueFd directory_;
};

}  // namespace coffer::cli
