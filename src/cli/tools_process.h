// SPDX-License-Identifier: Apache-2.0
//
// The process beside a run with --tools, or beside a call whose manifest has [calls], that serves them (verb_inside_tools.h): started, given its listener, ended.
//
// It is this program again, because a store does not survive fork. It lives in a process group of its own, so Ctrl-C is the
// command's. If this process dies, its end of the channel closes; then the calls inside end, and their receipts are sealed.
#pragma once

#include <sys/types.h>

#include <string>

#include "call/run/run_request.h"
#include "call/run/tools_server.h"

namespace coffer::cli {

// Where calls from inside are recorded, and what bounds them: that of the call that makes them.
struct ToolsPlace {
  std::string state;
  std::vector<std::string> manifests;  // directories; empty: the usual ones
  std::string config;                  // empty: the usual one
};

class ToolsProcess : public call::ToolsServer {
 public:
  // For the call `call_id`, which is admitted. `request` outlives this.
  ToolsProcess(const call::RunRequest& request, std::string call_id, ToolsPlace place)
      : request_(request), call_id_(std::move(call_id)), place_(std::move(place)) {}
  ~ToolsProcess() override;  // kills it, if it was not finished
  ToolsProcess(const ToolsProcess&) = delete;
  ToolsProcess& operator=(const ToolsProcess&) = delete;

  Status Start() override;
  Status Open(UniqueFd listener) override;
  Status Finish() override;
  bool running() const { return pid_ > 0; }

 private:
  std::vector<std::string> Words() const;
  void Kill();

  const call::RunRequest& request_;
  const std::string call_id_;
  const ToolsPlace place_;
  pid_t pid_ = -1;
  UniqueFd control_;
};

}  // namespace coffer::cli
