// SPDX-License-Identifier: Apache-2.0
//
// The rung before launch: everything the request names is resolved and opened, once, and found fit or refused.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "call/run/project.h"
#include "call/run/run_request.h"
#include "isolation/compose.h"
#include "isolation/runtime/runtime.h"

namespace coffer::call {

struct Prepared {
  std::vector<isolation::OpenedMount> mounts;
  std::vector<isolation::Input> inputs;
  isolation::OpenedRuntime runtime;
  std::vector<std::string> runtimes;  // names, for the receipt
  isolation::Call call;
  std::vector<std::string>
      path_first;         // inside; their directories come first on PATH, in this order
  std::string code_hash;  // of the script, if there is one
  std::optional<std::string> script_reaches;  // the host of a URL in it (network_hint.h)
  std::vector<sock_filter> imported;          // filter made from --seccomp FILE
  std::optional<Project> project;
  std::vector<std::string> notes;  // for the caller
};

Result<Prepared> Prepare(const RunRequest& request);

}  // namespace coffer::call
