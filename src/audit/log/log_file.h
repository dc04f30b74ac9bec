// SPDX-License-Identifier: Apache-2.0
//
// The file `records` under its lock: catch up with what others wrote, cut what a crash left, write a batch.
//
// One batch is one write and one fdatasync. If the write fails, the file is cut back to the end of the batch before it;
// if that fails, or the fdatasync did, it is not known what is on disk, and the file has to be opened again (`broken`).
// Not for several threads: log.cc lets one at a time in here.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "audit/log/log.h"
#include "audit/log/log_home.h"
#include "audit/log/log_tail.h"

namespace coffer::audit {

class LogFile {
 public:
  // `before` is the one that broke: what it acknowledged must be there, what it owes the log is taken over.
  static Result<std::unique_ptr<LogFile>> Open(const LogHome& home, const LogOptions& options,
                                               const LogFile* before = nullptr);

  // Appends the leaves as one batch behind whatever is there. On disk when it returns. One answer for each leaf.
  Result<std::vector<Appended>> Append(std::span<const LeafText* const> leaves);

  // Reads what other processes have appended; the newest checkpoint.
  Result<Checkpoint> Newest();
  // The same; where the last batch ends.
  Result<uint64_t> End();

  const std::string& origin() const { return origin_; }
  bool broken() const { return broken_; }
  // Closes the file, and with it whatever lock could not be given back. Only Open(..., before) makes sense after it.
  void Close() { records_.Reset(); }

 private:
  LogFile(const LogHome& home, const LogOptions& options) : home_(home), options_(options) {}
  class Turn;  // holds the lock

  Status ReadHeader();
  Status FirstLook(const LogFile* before);
  Status CatchUp();
  Status CutTail(uint64_t file_size);
  Result<std::vector<Appended>> WriteBatch(std::span<const LeafText* const> leaves);
  Status WriteDurably(const std::string& text);
  void GoBack();
  void KeepTip();

  const LogHome& home_;
  LogOptions options_;
  std::string origin_;
  UniqueFd records_;
  UniqueFd cache_;
  LogTail tip_;
  std::vector<LeafText> recovered_;  // events that are owed to the log
  bool broken_ = false;
};

}  // namespace coffer::audit
