// SPDX-License-Identifier: Apache-2.0
//
// The processes that have the store open. Each holds a lock on one byte of the file `owners`; the kernel releases it
// when the process dies.
//
// The byte's offset is a random number. A call's row holds it, so it names the process that owns the call, across pid
// namespaces and restarts. The locks are of open file descriptions (fcntl(2), F_OFD_SETLK): two stores in one process
// are two owners. A child that was forked and did not exec keeps its parent's lock; descriptors here are close-on-exec.
// Byte 0 is held while a store is being opened, so that opening happens one at a time. The file's content says that
// there is a database, so one that has vanished is noticed. Does not work on file systems without locks.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace coffer::store {

class Owner {
 public:
  // Opens the file and holds byte 0, waiting for others at most `timeout`.
  static Result<Owner> Open(int directory, Nanos timeout);

  // A number that no other process has, held from now on.
  Status TakeNumber();
  // Lets the next process open.
  Status EndOpening();

  int64_t number() const { return number_; }
  // Whether the process that took this number lives.
  Result<bool> IsHeld(int64_t number) const;

  Result<bool> HadDatabase() const;
  Status NoteDatabase();

 private:
  explicit Owner(UniqueFd file) : file_(std::move(file)) {}
  UniqueFd file_;
  int64_t number_ = 0;
};

}  // namespace coffer::store
