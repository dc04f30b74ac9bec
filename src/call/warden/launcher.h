// SPDX-License-Identifier: Apache-2.0
//
// Launches a boundary through a runner, a process of its own that supervises it. The runner is started here
// (`coffer call`) or by the warden (the daemon). Both send the same bytes back.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "call/run/run_request.h"
#include "call/run/tools_server.h"
#include "call/warden/check.h"
#include "call/warden/table.h"

namespace coffer::call {

// Our ends; each is readable until the runner is done with it. `report` holds an encoded RunReport
// (call/warden/wire.h), then its end.
struct RunChannels {
  UniqueFd out;
  UniqueFd err;
  UniqueFd report;
};

class Launcher {
 public:
  virtual ~Launcher() = default;
  // Returns when the runner was asked to start, not when it has.
  virtual Result<RunChannels> Launch(const std::string& call_id, const RunRequest& request,
                                     std::string_view stdin_text) = 0;
  // The call is killed at once; its report still comes.
  virtual void Kill(const std::string& call_id) = 0;
  // A signal for what the call runs. SIGTERM, SIGINT and SIGQUIT ask it to end, and it is killed soon after.
  virtual void Signal(const std::string& call_id, int signal) = 0;
};

// The rules and the table that a call is checked against before it runs, with and without a daemon.
struct Allowed {
  WardenRules rules;
  WardenTable table;
};

// Makes the server for the tools of a call's [calls]. Called in the call's runner. `request` outlives the server.
using MakeToolsServer = std::function<std::unique_ptr<ToolsServer>(const RunRequest& request,
                                                                   const std::string& call_id)>;

// Runs every call in a child of this process, which must be single-threaded. The children die with
// it. As the warden does, it refuses what is not allowed with a report, and gives the boundary a
// uid of its tenant.
class LocalLauncher : public Launcher {
 public:
  // Without `allowed` every call is allowed. `allowed` outlives the launcher. Without `make_tools` a call that has
  // tools is refused.
  explicit LocalLauncher(const Allowed* allowed = nullptr, MakeToolsServer make_tools = {})
      : allowed_(allowed), make_tools_(std::move(make_tools)) {}
  ~LocalLauncher() override;  // kills and reaps what still runs
  Result<RunChannels> Launch(const std::string& call_id, const RunRequest& request,
                             std::string_view stdin_text) override;
  void Kill(const std::string& call_id) override;
  void Signal(const std::string& call_id, int signal) override;
  // After everything of the call has come back: waits for its runner and forgets it.
  void Reap(const std::string& call_id);

 private:
  const Allowed* const allowed_;
  const MakeToolsServer make_tools_;
  std::map<std::string, pid_t> runners_;
};

// Asks the warden at the other end of `control`, which the caller owns.
class WardenLauncher : public Launcher {
 public:
  explicit WardenLauncher(int control) : control_(control) {}
  Result<RunChannels> Launch(const std::string& call_id, const RunRequest& request,
                             std::string_view stdin_text) override;
  void Kill(const std::string& call_id) override;
  void Signal(const std::string& call_id, int signal) override;

 private:
  const int control_;
};

}  // namespace coffer::call
