// SPDX-License-Identifier: Apache-2.0
#include "store/core.h"

#include <sys/syscall.h>

#include "base/sys.h"

namespace coffer::store {
namespace {

// Pages of 4 KiB in the write-ahead log. Below the first, moving them is not worth two fsyncs; beyond the second the log is
// made to start anew, even if writers have to wait for it once.
constexpr int kWorthMoving = 1000;
constexpr int kLong = 8192;
// The first process to open a store reads the log that the last one left: about a microsecond for each page.
constexpr int kLeftBehind = 256;

}  // namespace

Core::~Core() {
  if (db_ != nullptr && db_->wal_pages() > kLeftBehind) {
    (void)db_->RunCheckpoint(Connection::Checkpoint::kLast).ok();
  }
}

uint64_t Core::NoteCommit() {
  if (db_->wal_pages() > 2 * kLong) {
    // Nobody calls Maintain. If it fails, the log stays long and the next commit tries again; nothing is lost.
    (void)db_->RunCheckpoint(Connection::Checkpoint::kRestart).ok();
  }
  const std::lock_guard<std::mutex> guard(flush_mutex_);
  return ++committed_;
}

Status Core::Flush() {
  uint64_t number = 0;
  {
    const std::lock_guard<std::mutex> guard(flush_mutex_);
    number = committed_;
  }
  return FlushUntil(number);
}

Status Core::FlushUntil(uint64_t number) {
  if (!options.fsync) {
    return {};
  }
  std::unique_lock<std::mutex> lock(flush_mutex_);
  while (on_disk_ < number) {
    if (flush_error_.has_value()) {
      return *flush_error_;
    }
    if (flushing_) {
      flushed_.wait(lock);
      continue;
    }
    flushing_ = true;
    const uint64_t covered = committed_;
    lock.unlock();
    const long answer = raw::Syscall(SYS_fdatasync, wal_.get());
    lock.lock();
    flushing_ = false;
    if (answer < 0) {
      // The kernel reports a failed write-back once and then forgets it, so no later success means anything.
      flush_error_ = sys::ErrnoError("store.io", "the store could not be written to disk", answer);
      flush_error_->hint = "look at the disk and the kernel's log, then start again";
    } else {
      on_disk_ = covered;
    }
    flushed_.notify_all();
  }
  return {};
}

Status Core::Maintain() {
  int pages = 0;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    pages = db_->wal_pages();
  }
  if (pages < kWorthMoving) {
    return {};
  }
  // A connection of its own, so that calls go on meanwhile.
  const std::lock_guard<std::mutex> guard(maintain_mutex_);
  if (maintainer_ == nullptr) {
    TRY_ASSIGN(maintainer_, Connection::Open(directory + "/coffer.db", options.busy_timeout));
    TRY(maintainer_->Script("PRAGMA synchronous = NORMAL"));
  }
  TRY_ASSIGN(const bool moved, maintainer_->RunCheckpoint(Connection::Checkpoint::kPassive));
  if (moved && pages > kLong) {
    TRY_ASSIGN([[maybe_unused]] const bool restarted,
               maintainer_->RunCheckpoint(Connection::Checkpoint::kRestart));
  }
  return {};
}

}  // namespace coffer::store
