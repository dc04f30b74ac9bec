// SPDX-License-Identifier: Apache-2.0
//
// What is behind a Store: a connection with a lock around it, the owner's number, and fsyncs that are shared.
//
// Write runs a body in one transaction; Read runs one in a snapshot. Both hold the lock for as long as the body takes. The
// fsync of a durable write happens after the lock is released: one thread calls fdatasync on the write-ahead log for all
// that wait, which is what `synchronous=FULL` would do for each of them, one after the other. It is right because a
// commit has written its frames to that file, and a checkpoint, which may move them to the database and start the file
// anew, syncs both itself (`synchronous=NORMAL`). Only files of this folder include this header.
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

  Nanos Now() const { return options.clock(); }

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
    return body(*db_);
  }

  Status Flush();
  Status Maintain();

 private:
  template <typename Body>
  auto WriteCommitted(Body& body, uint64_t& number) -> std::invoke_result_t<Body, Connection&> {
    const std::lock_guard<std::mutex> guard(mutex_);
    TRY_ASSIGN(Transaction transaction, Transaction::Begin(*db_));
    auto answer = body(*db_);
    if (!answer.ok()) {
      return answer;
    }
    TRY(transaction.Commit());
    number = NoteCommit();
    return answer;
  }

  uint64_t NoteCommit();  // its number; also keeps the log from growing without bound
  Status FlushUntil(uint64_t number);

  friend class Store;
  std::mutex mutex_;  // of db_
  std::unique_ptr<Connection> db_;
  UniqueFd wal_;

  std::mutex flush_mutex_;  // of what follows
  std::condition_variable flushed_;
  uint64_t committed_ = 0;
  uint64_t on_disk_ = 0;
  bool flushing_ = false;
  std::optional<Error> flush_error_;

  std::mutex maintain_mutex_;  // of maintainer_
  std::unique_ptr<Connection> maintainer_;
};

}  // namespace coffer::store
