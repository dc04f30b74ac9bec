// SPDX-License-Identifier: Apache-2.0
#include "store/core.h"

#include <sys/syscall.h>

#include <system_error>
#include <thread>

#include "base/disk_wait.h"
#include "base/sys.h"
#include "base/thread_priority.h"

namespace coffer::store {
namespace {

// Pages of 4 KiB in the write-ahead log. Below the first, moving them is not worth two fsyncs;
// beyond the second the log is made to start anew, even if writers have to wait for it once.
constexpr int kWorthMoving = 1000;
constexpr int kLong = 8192;
// The first process to open a store reads the log that the last one left: about a microsecond for each page.
constexpr int kLeftBehind = 256;

// Reading a whole store may take a hundredth of one processor; a tenth while calls wait for it to be whole again.
constexpr int kInspectShare = 100;
constexpr int kHurriedShare = 10;

Status ReadWhole(Connection& db) { return db.ReadAll("PRAGMA quick_check(1)"); }

// A tenth of a second of one processor, or more. Calls that are served meanwhile do not wait for
// it: the thread holds no lock, and gives way to theirs.
Status ReadWholePatiently(Connection& db) {
  Status whole;
  try {
    std::thread([&] {
      GiveWayToOthers();
      whole = ReadWhole(db);
    }).join();
  } catch (const std::system_error&) {  // the host has no thread for us at the moment
    return ReadWhole(db);
  }
  return whole;
}

}  // namespace

Result<std::unique_ptr<Connection>> Core::Connect() const {
  TRY_ASSIGN(std::unique_ptr<Connection> db,
             Connection::Open(directory + "/coffer.db", options.busy_timeout));
  // cell_size_check finds a damaged page when it is read, before it is used.
  TRY(db->Script("PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON"));
  TRY_ASSIGN(Statement journal, db->Prepare("PRAGMA journal_mode = WAL"));
  TRY_ASSIGN(const bool row, journal.Step());
  if (!row || journal.Text(0) != "wal") {
    return HostFault("store.open", "the state directory's file system has no shared memory",
                     "put the state directory on a local file system");
  }
  // core.h says why this, together with Flush, is as good as FULL.
  TRY(db->Script(options.fsync ? "PRAGMA synchronous = NORMAL" : "PRAGMA synchronous = OFF"));
  return db;
}

Core::~Core() {
  if (db_ != nullptr && db_->wal_pages() > kLeftBehind && CheckFiles().ok()) {
    (void)db_->RunCheckpoint(Connection::Checkpoint::kLast).ok();
  }
}

uint64_t Core::NoteCommit() {
  if (db_->wal_pages() > 2 * kLong) {
    // No thread calls Maintain. If it fails, the log stays long and the next commit tries again; nothing is lost.
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
  const DiskWait wait;
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
    // A commit that is made while fdatasync runs is not covered by it. Its thread takes the next
    // round.
    const uint64_t covered = committed_;
    lock.unlock();
    const long answer = raw::Syscall(SYS_fdatasync, files_.wal());
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
    TRY(clock->Keep(*db_));
    TRY(CheckFiles());  // a checkpoint copies what is in the log, whatever it is
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

Status Core::CheckFiles() {
  if (!damage_) {
    NoteDamage(files_.Check(*db_));
  }
  return damage_ ? Status(*damage_) : Status();
}

Status Core::Inspect() {
  const std::unique_lock<std::mutex> only(inspect_mutex_, std::try_to_lock);
  const Nanos began = BootTime();
  Status files;
  bool hurried = false;  // calls wait until the store is seen to be whole
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    files = files_.Check(*db_);
    NoteDamage(files);
    const bool wanted = damage_ || files_.Size() <= options.inspect_most;
    if (!only.owns_lock() || !wanted || began < NextInspection()) {
      return damage_ ? Status(*damage_) : Status();
    }
    hurried = damage_.has_value();
  }
  // A connection of its own: the other has pages in memory that the files may no longer have.
  Result<std::unique_ptr<Connection>> fresh = files.ok() ? Connect() : files.error();
  const Status whole = !fresh.ok() ? Status(fresh.error())
                       : hurried   ? ReadWhole(**fresh)
                                   : ReadWholePatiently(**fresh);

  const std::lock_guard<std::mutex> guard(mutex_);
  inspected_at_ = BootTime();
  inspection_took_ = inspected_at_ - began;
  if (damage_ && whole.ok()) {
    db_ = std::move(*fresh);
    damage_.reset();
  }
  NoteDamage(whole);
  return whole;
}

Nanos Core::NextInspection() const {
  return inspected_at_ + (damage_
                              ? kHurriedShare * inspection_took_
                              : std::max(options.inspect_every, kInspectShare * inspection_took_));
}

}  // namespace coffer::store
