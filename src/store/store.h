// SPDX-License-Identifier: Apache-2.0
//
// The store: what must be known after a crash. SQLite under a state directory; the functions that
// use it are in the other headers of this folder, one subject each.
//
// Several processes may have the same directory open: writers take turns (WAL, BEGIN IMMEDIATE, a
// bounded wait). A call belongs to the process that admitted it, and that process is alive as long
// as the kernel holds its lock on one byte of the file `owners`; so an Open can tell what a dead
// process left (recovery.h) from what a living one is doing.
//
// Two kinds of "written". Committed: survives the death of every process, at once. On disk:
// survives the loss of power, after an fsync that takes as long as the disk takes; threads that
// wait at the same time share one. Functions say which they promise; Flush turns the first into the
// second.
//
// Thread-safe. The objects behind it are locked for a transaction, not for an fsync. Do not use it
// in a forked child. It does not protect against a user who can write the state directory. A clock
// that is set while it runs changes nothing that is counted here (store_clock.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace coffer::store {

struct Core;  // store/core.h
struct RecoveredCall;

// How sure a transition is when its function returns.
enum class Durability : uint8_t {
  kCommitted,  // the caller calls Flush before anything happens that relies on it
  kOnDisk,
};

struct StoreOptions {
  Nanos busy_timeout = std::chrono::seconds(10);  // how long to wait for another process
  std::function<Nanos()>
      clock;  // instead of the store's own (store_clock.h), since 1970: for tests
  std::function<Nanos()> wall = WallTime;    // what the store's own is made of
  std::function<Nanos()> uptime = BootTime;  // the same
  std::string boot_id;                       // the same; empty: the kernel's
  // Tests and benchmarks only: false never calls fsync, and a power loss may lose acknowledged calls.
  bool fsync = true;
  Nanos inspect_every = std::chrono::minutes(1);  // at most
  uint64_t inspect_most =
      256ULL << 20;  // bytes: a larger database is not read just to see whether it can be
};

class Store {
 public:
  // Makes the directory (mode 0700; its parent must exist) and the database if they are not there, brings an older
  // schema up to date, and ends what dead processes left (see recovered()). Refuses a directory that others may write,
  // a database that is damaged, foreign, newer than this program, or gone although it was there.
  static Result<Store> Open(const std::string& directory, StoreOptions options = {});
  Store(Store&&) noexcept;
  Store& operator=(Store&&) = delete;
  ~Store();

  // What this Open ended, or took over from an Open that died before it had cleaned up. See recovery.h.
  const std::vector<RecoveredCall>& recovered() const;

  // Returns when everything committed before is on disk. After a failed fsync it is not known what the disk has: every
  // later Flush fails too, until the store is opened again.
  Status Flush();

  // Moves commits from the write-ahead log into the database file, so that the log stays short. For a
  // timer, once a second or so, on a thread of its own: no call waits for it. Without it, a commit
  // does so itself when the log is long.
  Status Maintain();

  // Reads the whole database now and then unless it is large, for a timer as above; in between it
  // says what is known. An Error: the store is damaged, and no call is taken until this has found
  // it whole again.
  Status Inspect();

  const std::string& directory() const;
  Nanos Now() const;

  // For the functions of this folder.
  Core& core() { return *core_; }

 private:
  explicit Store(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace coffer::store
