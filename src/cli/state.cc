// SPDX-License-Identifier: Apache-2.0
#include "cli/state.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "base/sys.h"
#include "store/state_part.h"
#include "store/tenant.h"

namespace coffer::cli {
namespace {

// File systems of the kernel's own, where no file can be made.
constexpr long kNoFiles[] = {PROC_SUPER_MAGIC,    SYSFS_MAGIC,        CGROUP_SUPER_MAGIC,
                             CGROUP2_SUPER_MAGIC, DEVPTS_SUPER_MAGIC, DEBUGFS_MAGIC};

// What the caller named can never be a state directory: refused, not a fault of the host.
Status CheckStateDir(const std::string& path) {
  struct stat info{};
  struct statfs system{};
  const long answer =
      raw::Syscall(SYS_newfstatat, AT_FDCWD, raw::Arg(path.c_str()), raw::Arg(&info), 0);
  if (answer < 0 && answer != -ENOTDIR) {
    return {};
  }
  if (answer < 0 || !S_ISDIR(info.st_mode)) {
    return Refused("policy.state", path + " is not a directory, and cannot hold the record",
                   "name another state directory with --state DIR");
  }
  if (::statfs(path.c_str(), &system) == 0 &&
      std::find(std::begin(kNoFiles), std::end(kNoFiles), static_cast<long>(system.f_type)) !=
          std::end(kNoFiles)) {
    return Refused("policy.state", path + " belongs to the kernel, and cannot hold the record",
                   "name another state directory with --state DIR");
  }
  return {};
}

Status MakeDirs(const std::string& path) {
  Status made = sys::MakeDirs(path, 0700);
  if (!made.ok()) {
    made.error().hint = "name another state directory with --state DIR";
  }
  return made;
}

}  // namespace

std::string CallerName() { return fmt::format("uid:{}", ::getuid()); }

Result<State> State::OpenRecord(const std::string& directory) {
  TRY(CheckStateDir(directory));
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
