// SPDX-License-Identifier: Apache-2.0
//
// From a manifest and the arguments of one call to what is launched: the envelope, the command, its stdin.
//
// The envelope is the same value that `coffer run` makes from its flags, and from here on there is one code path. The
// arguments must have passed the schema before; templates and paths are applied here and may still refuse them. It
// does not ask whether the surfaces exist (surfaces.h) nor whether the agent may call the tool.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "policy/envelope.h"
#include "policy/manifest/manifest.h"

namespace coffer::policy {

// What only the host knows about a call.
struct CallPlaces {
  std::string session_workspace;  // the session's directory on the host; empty: no session
  // The caller's project on the host, which stands in for the session's files at its own path; empty: none.
  std::string project;
};

// Where `path` is, which a manifest writes as /workspace or below it: in the project, if there is one.
std::string WorkspacePath(const std::string& path, const CallPlaces& places);

struct ToolCall {
  Envelope envelope;
  std::vector<std::string> command;  // argv; the program is looked up in the runtime
  std::string stdin_text;            // all of stdin
};

// The command and what goes into it, without an envelope.
struct RenderedCall {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> env;
  std::string stdin_text;
};
Result<RenderedCall> RenderCall(const Manifest& manifest, const Json& args,
                                const CallPlaces& places = {});

Result<ToolCall> MakeToolCall(const Manifest& manifest, const Json& args, const CallPlaces& places);

// The envelope alone, with the variables of the call already rendered.
Result<Envelope> MakeEnvelope(const Manifest& manifest,
                              std::vector<std::pair<std::string, std::string>> env,
                              const CallPlaces& places);

}  // namespace coffer::policy
