// SPDX-License-Identifier: Apache-2.0
//
// What serves declared tools to the command of a run (`coffer run --tools`), as the run's supervisor sees it.
//
// It is another process (cli/tools_process.h): the supervisor carries none of its bytes. All that
// leads from the boundary to it is one listening socket, which the supervisor binds inside before
// the command starts and gives away.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"

namespace coffer::call {

class ToolsServer {
 public:
  virtual ~ToolsServer() = default;
  // Does not wait for it.
  virtual Status Start() = 0;
  // Waits until it is ready, and hands it the listener. kRefused if there is no such tool.
  virtual Status Open(UniqueFd listener) = 0;
  // Ends the calls that still run, and waits until their receipts are sealed. An Error: it died before.
  virtual Status Finish() = 0;
};

}  // namespace coffer::call
