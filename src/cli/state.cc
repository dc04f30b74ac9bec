// SPDX-License-Identifier: Apache-2.0
#include "cli/state.h"

#include <errno.h>
#include <fcntl.h>

#include "base/sys.h"
#include "call/recovered.h"
#include "store/tenant.h"

namespace coffer::cli {
namespace {

// Every directory on the way, for the user alone.
Status MakeDirs(const std::string& path) {
  for (size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
    const std::string part = path.substr(0, at);
    const Status made = sys::MakeDirAt(AT_FDCWD, part, 0700);
    if (!made.ok() && made.error().sys_errno != EEXIST) {
      Error error = made.error();
      error.hint = "name another state directory with --state DIR";
      return error;
    }
    if (at == std::string::npos) {
      return {};
    }
  }
}

}  // namespace

Result<State> State::Open(const call::VerbFlags& flags) {
  State state;
  TRY_ASSIGN(state.directory_, flags.StateDir());
  TRY(MakeDirs(state.directory_));
  TRY_ASSIGN(store::Store store, store::Store::Open(state.directory_));
  state.store_ = std::make_unique<store::Store>(std::move(store));
  TRY(call::SettleRecovered(*state.store_, state.store_->recovered()));
  TRY_ASSIGN(const store::Tenant local,
             store::EnsureTenant(*state.store_, store::TenantId::Local()));
  (void)local;
  TRY(MakeDirs(state.directory_ + "/sessions"));
  TRY_ASSIGN(std::vector<std::string> tools, flags.ToolDirs());
  state.shelf_ = std::make_unique<call::ToolShelf>(std::move(tools));
  TRY(state.shelf_->Reload());
  return state;
}

call::LadderOptions State::ladder_options() const {
  call::LadderOptions options;
  options.sessions = directory_ + "/sessions";
  return options;
}

}  // namespace coffer::cli
