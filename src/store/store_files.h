// SPDX-License-Identifier: Apache-2.0
//
// The database and its write-ahead log as files: whether they are still the ones that were opened, and still look like
// what SQLite wrote.
//
// SQLite keeps pages in memory and trusts them, so a process goes on for a long time after its
// files were overwritten, cut or replaced, and acknowledges what is lost. This look costs a few
// microseconds and finds the files as a whole gone wrong; a page in the middle is found by reading
// it (Core::Inspect). Only files of this folder include this header.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "store/sqlite.h"

namespace coffer::store {

class StoreFiles {
 public:
  StoreFiles() = default;
  // Both must be there.
  static Result<StoreFiles> Open(const std::string& directory);

  // `db` has them open. An Error with the code store.corrupt says which file is wrong, and what to do.
  Status Check(const Connection& db) const;

  // Of the database without its log; 0 if it cannot be told.
  uint64_t Size() const;

  // Of the write-ahead log, for fdatasync.
  int wal() const { return wal_.get(); }

 private:
  struct Place {
    uint64_t device = 0;
    uint64_t inode = 0;
    uint64_t size = 0;
    bool IsAt(const Place& other) const { return device == other.device && inode == other.inode; }
  };
  static Result<Place> Look(const std::string& path);
  static Status CheckPlace(const std::string& path, const Place& opened);

  std::string database_, log_;  // paths
  Place database_place_, log_place_;
  UniqueFd wal_;
};

}  // namespace coffer::store
