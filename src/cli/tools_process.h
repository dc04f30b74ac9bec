// SPDX-License-Identifier: Apache-2.0
//
// The process beside a run with --tools, or beside a call whose manifest has [calls], that serves
// them (verb_inside_tools.h): started, given its listener, ended.
//
// It is this program again, because a store does not survive fork. If this process dies, the calls
// inside end, and their receipts are sealed.
#pragma once

#include <string>

#include "call/run/run_request.h"
#include "cli/serving_process.h"

namespace coffer::cli {

// Where calls from inside are recorded, and what bounds them: that of the call that makes them.
struct ToolsPlace {
  std::string state;
  std::vector<std::string> manifests;  // directories; empty: the usual ones
  std::string config;                  // empty: the usual one
};

class ToolsProcess : public ServingProcess {
 public:
  // For the call `call_id`, which is admitted. `request` outlives this.
  ToolsProcess(const call::RunRequest& request, std::string call_id, ToolsPlace place)
      : request_(request), call_id_(std::move(call_id)), place_(std::move(place)) {}

  Status Start() override;

 private:
  std::vector<std::string> Words() const;

  const call::RunRequest& request_;
  const std::string call_id_;
  const ToolsPlace place_;
};

}  // namespace coffer::cli
