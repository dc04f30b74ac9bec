// SPDX-License-Identifier: Apache-2.0
//
// The monitor's part in policy: it has the manifests compiled (compile.h) at the start, on SIGHUP and when a file of
// theirs changed, hands each table to the warden, and then lets the gateway read the same files.
//
// The warden has a table before the gateway hears of the reload, so a call that a new manifest allows is never refused
// for a table that is late. In the other direction a call may meet a table that is newer than what the gateway went by:
// then the new one holds. If compiling fails, the child has said why and everything stays as it was.
#pragma once

#include <string>

#include "call/tool_shelf.h"
#include "daemon/compile.h"
#include "daemon/config.h"

namespace coffer::daemon {

// Our ends of the sockets.
struct PolicySockets {
  int warden = -1;
  int gateway = -1;
};

class PolicyKeeper {
 public:
  explicit PolicyKeeper(const Config& config);

  // The first table. The daemon does not start without one.
  Status Compile();
  // Gives the warden the table that holds.
  Status HandOver(int to_warden) const;

  // SIGHUP: everything is read again.
  void Reload(const PolicySockets& sockets);
  // Compiles again if a manifest was added, removed or changed. Cheap if not.
  void ReloadIfChanged(const PolicySockets& sockets);

 private:
  bool CompileAgain(CompileScope scope, const PolicySockets& sockets);
  std::string Signature() const;

  const Config& config_;
  const call::ToolShelf shelf_;  // only looked at from outside: never filled
  std::string signature_;
  CompiledTable table_;
};

}  // namespace coffer::daemon
