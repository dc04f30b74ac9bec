// SPDX-License-Identifier: Apache-2.0
//
// A process beside a call that serves tools on a socket inside (inside_control.h), as the call's
// supervisor has it: started, given its listener, ended.
//
// It is this program again. It lives in a process group of its own, so Ctrl-C is the command's. If
// the supervisor dies, its end of the channel closes, and the process ends.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "call/run/tools_server.h"

namespace coffer::cli {

class ServingProcess : public call::ToolsServer {
 public:
  ServingProcess() = default;
  ~ServingProcess() override;  // kills it, if it was not finished
  ServingProcess(const ServingProcess&) = delete;
  ServingProcess& operator=(const ServingProcess&) = delete;

  Status Open(UniqueFd listener) override;
  Status Finish() override;
  bool running() const { return pid_ > 0; }

 protected:
  // `words` are its command line; `second` becomes its second descriptor.
  Status StartWith(std::vector<std::string> words, int second);

 private:
  void Kill();

  pid_t pid_ = -1;
  UniqueFd control_;
};

}  // namespace coffer::cli
