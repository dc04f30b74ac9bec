// SPDX-License-Identifier: Apache-2.0
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"
#include "store/core.h"
#include "store/migrations.h"
#include "store/recovery.h"
#include "store/state_part.h"

namespace coffer::store {
namespace {

constexpr const char* kDatabase = "coffer.db";

Result<struct stat> Look(int fd, const std::string& what) {
  struct stat info{};
  const long answer = raw::Syscall(SYS_fstat, fd, raw::Arg(&info));
  if (answer < 0) {
    return sys::ErrnoError("store.open", "cannot look at " + what, answer);
  }
  return info;
}

Result<UniqueFd> OpenDirectory(const std::string& path) {
  const Status made = sys::MakeDirAt(AT_FDCWD, path, 0700);
  if (!made.ok() && made.error().sys_errno != EEXIST) {
    Error error = made.error();
    error.code = "store.open";
    error.message = "cannot create the state directory: " + error.message;
    error.hint = "choose another with --state DIR";
    return error;
  }
  TRY_ASSIGN(UniqueFd directory, sys::Open(path, O_RDONLY | O_DIRECTORY));
  TRY_ASSIGN(const struct stat info, Look(directory.get(), path));
  const uid_t me = ::geteuid();
  if (info.st_uid != me && me != 0) {
    return HostFault("store.open",
                     fmt::format("{} belongs to uid {}, not to you", path, info.st_uid),
                     "choose a state directory of your own with --state DIR");
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return HostFault("store.open", path + " can be written by others",
                     "chmod go-w it: who writes there can make keys");
  }
  return directory;
}

// Makes a file as its directory's owner would: root may be here before the daemon. SQLite gives -wal and -shm the
// database's owner and mode.
Status MakeFile(int directory, const char* name) {
  TRY_ASSIGN(const struct stat home, Look(directory, "the state directory"));
  TRY_ASSIGN(UniqueFd file, OpenStatePart(directory, name, O_RDWR | O_CREAT, 0600));
  TRY_ASSIGN(const struct stat info, Look(file.get(), name));
  if (::geteuid() == 0 && info.st_uid != home.st_uid) {
    const long answer = raw::Syscall(SYS_fchown, file.get(), home.st_uid, home.st_gid);
    if (answer < 0) {
      return sys::ErrnoError("store.open", "cannot give a file to the state directory's owner",
                             answer);
    }
  }
  return {};
}

Result<bool> HasDatabase(int directory) {
  struct stat info{};
  const long answer = raw::Syscall(SYS_newfstatat, directory, raw::Arg(kDatabase), raw::Arg(&info),
                                   AT_SYMLINK_NOFOLLOW);
  if (answer == -ENOENT) {
    return false;
  }
  if (answer < 0) {
    return sys::ErrnoError("store.open", "cannot look at coffer.db", answer);
  }
  return info.st_size > 0;
}

Status SyncDirectory(int directory) {
  const long answer = raw::Syscall(SYS_fsync, directory);
  if (answer < 0) {
    return sys::ErrnoError("store.io", "cannot sync the state directory", answer);
  }
  return {};
}

}  // namespace

Store::Store(std::unique_ptr<Core> core) : core_(std::move(core)) {}
Store::Store(Store&&) noexcept = default;
Store::~Store() = default;

Result<Store> Store::Open(const std::string& directory, StoreOptions options) {
  auto core = std::make_unique<Core>();
  core->directory = directory;
  core->options = std::move(options);
  TRY_ASSIGN(UniqueFd home, OpenDirectory(directory));
  TRY(MakeFile(home.get(), "owners"));
  TRY_ASSIGN(core->owner, Owner::Open(home.get(), core->options.busy_timeout));

  // SQLite is told the same, and opens what belongs to a database without links by itself; this
  // says what to do about it.
  for (const char* name : {kDatabase, "coffer.db-wal", "coffer.db-shm"}) {
    TRY(CheckStatePart(directory, name));
  }
  TRY_ASSIGN(const bool had, core->owner->HadDatabase());
  TRY_ASSIGN(const bool has, HasDatabase(home.get()));
  if (had && !has) {
    return HostFault("store.corrupt", directory + "/coffer.db was there and is gone or empty",
                     "restore it from a backup, or move the whole state directory away");
  }
  if (!has) {
    TRY(MakeFile(home.get(), kDatabase));
  }
  TRY_ASSIGN(core->db_, core->Connect());
  TRY(Migrate(*core->db_));
  TRY_ASSIGN(StoreClock clock,
             StoreClock::Open(*core->db_,
                              {core->options.wall, core->options.uptime, core->options.boot_id}));
  core->clock.emplace(std::move(clock));
  TRY_ASSIGN(core->files_, StoreFiles::Open(directory));
  if (!had) {
    TRY(core->FlushUntil(core->NoteCommit()));
    // The note that there was a database must not reach the disk before the database's name does.
    TRY(SyncDirectory(home.get()));
    TRY(core->owner->NoteDatabase());
  }
  // Both under the lock of byte 0, which each process takes while it opens: calls of a dead process
  // are recovered by one process, which is known to live.
  TRY(core->owner->TakeNumber());
  TRY_ASSIGN(core->recovered, RecoverCalls(*core));
  TRY(core->owner->EndOpening());
  return Store(std::move(core));
}

const std::vector<RecoveredCall>& Store::recovered() const { return core_->recovered; }
Status Store::Flush() { return core_->Flush(); }
Status Store::Maintain() { return core_->Maintain(); }
Status Store::Inspect() { return core_->Inspect(); }
const std::string& Store::directory() const { return core_->directory; }
Nanos Store::Now() const { return core_->Now(); }

}  // namespace coffer::store
