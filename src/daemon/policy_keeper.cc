// SPDX-License-Identifier: Apache-2.0
#include "daemon/policy_keeper.h"

#include <utility>

#include "base/print.h"
#include "call/warden/protocol.h"
#include "daemon/operator_files.h"

namespace coffer::daemon {

PolicyKeeper::PolicyKeeper(const Config& config)
    : config_(config), shelf_(config.tools, config.default_tools, config.operator_uid) {}

std::string PolicyKeeper::Signature() const {
  Result<std::string> signature = shelf_.Signature();
  return signature.ok() ? std::move(signature).value() : signature.error().message;
}

Status PolicyKeeper::Compile() {
  signature_ = Signature();
  TRY_ASSIGN(table_, CompileTable(config_, {}, CompileScope::kAll));
  return {};
}

Status PolicyKeeper::HandOver(int to_warden) const {
  return call::SendTable(to_warden, table_.file.get(), table_.size);
}

bool PolicyKeeper::CompileAgain(CompileScope scope, const PolicySockets& sockets) {
  // Before the files are read: what changes meanwhile is found by the next look.
  signature_ = Signature();
  Result<CompiledTable> made = CompileTable(config_, table_, scope);
  if (!made.ok()) {
    PrintError(made.error());
    return false;
  }
  table_ = std::move(made).value();
  if (const Status handed = HandOver(sockets.warden); !handed.ok()) {
    PrintError(handed.error());
    return false;
  }
  return true;
}

void PolicyKeeper::Reload(const PolicySockets& sockets) {
  if (CompileAgain(CompileScope::kAll, sockets)) {
    SendOperatorFiles(config_, sockets.gateway);
  }
}

void PolicyKeeper::ReloadIfChanged(const PolicySockets& sockets) {
  if (Signature() != signature_ && CompileAgain(CompileScope::kManifests, sockets)) {
    SendManifestsChanged(sockets.gateway);
  }
}

}  // namespace coffer::daemon
