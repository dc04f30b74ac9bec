// SPDX-License-Identifier: Apache-2.0
//
// The process beside a run with --tools that serves them (verb_inside_tools.h): started, given its listener, ended.
//
// It is this program again, because a store does not survive fork. It lives in a process group of its own, so Ctrl-C is the
// command's. If this process dies, its end of the channel closes; then the calls inside end, and their receipts are sealed.
#pragma once

#include <sys/types.h>

#include <string>

#include "call/run/run_request.h"
#include "call/run/tools_server.h"

namespace coffer::cli {

class ToolsProcess : public call::ToolsServer {
 public:
  // For the call `call_id`, which is admitted. `request` outlives this.
  ToolsProcess(const call::RunRequest& request, std::string call_id)
      : request_(request), call_id_(std::move(call_id)) {}
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
  pid_t pid_ = -1;
  UniqueFd control_;
};

}  // namespace coffer::cli
