// SPDX-License-Identifier: Apache-2.0
#include "cli/state.h"

#include "base/sys.h"
#include "store/state_part.h"
#include "store/tenant.h"

namespace coffer::cli {
namespace {

Status MakeDirs(const std::string& path) {
  Status made = sys::MakeDirs(path, 0700);
  if (!made.ok()) {
    made.error().hint = "name another state directory with --state DIR";
  }
  return made;
}

}  // namespace

Result<State> State::OpenRecord(const std::string& directory) {
  State state;
  state.directory_ = directory;
  TRY(MakeDirs(state.directory_));
  TRY_ASSIGN(store::Store store, store::Store::Open(state.directory_));
  state.store_ = std::make_unique<store::Store>(std::move(store));
  TRY_ASSIGN(audit::Log log, call::OpenLog(*state.store_, state.directory_ + "/log"));
  state.log_ = std::make_unique<audit::Log>(std::move(log));
  state.recorder_ = std::make_unique<call::Recorder>(*state.store_, *state.log_);
  TRY(state.recorder_->UseKnownReceivers());
  TRY(state.recorder_->Settle(state.store_->recovered()));
  TRY_ASSIGN(const store::Tenant local,
             store::EnsureTenant(*state.store_, store::TenantId::Local()));
  (void)local;
  return state;
}

Result<State> State::Open(const call::VerbFlags& flags) {
  TRY_ASSIGN(const std::string directory, flags.StateDir());
  TRY_ASSIGN(State state, OpenRecord(directory));
  TRY(store::CheckStatePart(state.directory_, "sessions"));
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
