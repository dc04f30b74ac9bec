// SPDX-License-Identifier: Apache-2.0
//
// What is behind a Store: a connection with a lock around it, the owner's number, and fsyncs that are shared.
//
// Write runs a body in one transaction; Read runs one in a snapshot. Both hold the lock for as long
// as the body takes. The fsync of a durable write happens after the lock is released: one thread
// calls fdatasync on the write-ahead log for all that wait, which is what `synchronous=FULL` would
// do for each of them, one after the other. It is right because a commit has written its frames to
// that file, and a checkpoint, which may move them to the database and start the file anew, syncs
// both itself (`synchronous=NORMAL`).
//
// A store that is damaged under a running process takes no further write, also not one that would
// succeed from memory: what is seen (its files as a whole, an answer of SQLite, the check of
// Inspect) is kept until Inspect has read all of it and found it whole. Only files of this folder
// include this header.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/unique_fd.h"
#include "store/owner.h"
#include "store/recovery.h"
#include "store/sqlite.h"
#include "store/store.h"
#include "store/store_clock.h"
#include "store/store_files.h"

namespace coffer::store {

struct Core {
  Core() = default;
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  ~Core();  // leaves a short log behind, so that the next Open has little to read

  std::string directory;
  StoreOptions options;
  std::optional<Owner> owner;
  std::vector<RecoveredCall> recovered;

  std::optional<StoreClock> clock;

  Nanos Now() const { return options.clock ? options.clock() : clock->Now(); }

  Result<std::unique_ptr<Connection>> Connect() const;

  // `body` takes a Connection& and returns a Result; an Error rolls back.
  template <typename Body>
  auto Write(Durability durability, Body body) -> std::invoke_result_t<Body, Connection&> {
    uint64_t number = 0;
    std::invoke_result_t<Body, Connection&> answer = WriteCommitted(body, number);
    if (answer.ok() && durability == Durability::kOnDisk) {
      TRY(FlushUntil(number));
    }
    return answer;
  }

  // For lists and lookups: nothing changes between the statements of one body.
  template <typename Body>
  auto Read(Body body) -> std::invoke_result_t<Body, Connection&> {
    const std::lock_guard<std::mutex> guard(mutex_);
    TRY(db_->Run("BEGIN"));
    const Transaction snapshot(*db_);  // ends it, however the body ends
    auto answer = body(*db_);
    NoteDamage(answer);
    return answer;
  }

  Status Flush();
  Status Maintain();
  Status Inspect();

 private:
  template <typename Body>
  auto WriteCommitted(Body& body, uint64_t& number) -> std::invoke_result_t<Body, Connection&> {
    const std::lock_guard<std::mutex> guard(mutex_);
    TRY(CheckFiles());
    TRY_ASSIGN(Transaction transaction, Transaction::Begin(*db_));
    auto answer = body(*db_);
    if (!answer.ok()) {
      NoteDamage(answer);
      return answer;
    }
    const Status committed = transaction.Commit();
    NoteDamage(committed);
    TRY(committed);
    number = NoteCommit();
    return answer;
  }

  // With mutex_ held: an Error if the store is known to be damaged, or is seen to be.
  Status CheckFiles();
  Nanos NextInspection() const;
  template <typename Answer>
  void NoteDamage(const Answer& answer) {
    if (!answer.ok() && answer.error().code == "store.corrupt") {
      damage_ = answer.error();
    }
  }

  uint64_t NoteCommit();  // its number; also keeps the log from growing without bound
  Status FlushUntil(uint64_t number);

  friend class Store;
  StoreFiles files_;
  // Locks are taken in this order: inspect_mutex_, mutex_, then the clock's or flush_mutex_.
  // maintain_mutex_ is never taken with another one held.
  std::mutex mutex_;  // of what follows
  std::unique_ptr<Connection> db_;
  std::optional<Error> damage_;
  Nanos inspected_at_ = Nanos::min() / 2;  // never
  Nanos inspection_took_{0};

  std::mutex flush_mutex_;  // of what follows
  std::condition_variable flushed_;
  uint64_t committed_ = 0;
  uint64_t on_disk_ = 0;
  bool flushing_ = false;
  std::optional<Error> flush_error_;

  std::mutex maintain_mutex_;  // of maintainer_
  std::unique_ptr<Connection> maintainer_;

  std::mutex inspect_mutex_;  // held by the one who inspects
};

}  // namespace coffer::store
