// SPDX-License-Identifier: Apache-2.0
//
// A reserve on the disk of the state directory, so that a full disk can be said and survived.
//
// A file of the state directory holds some space. When the disk runs low, nothing new begins
// (calls, sessions and uploads hear 503), and the file gives its space back: the ends of calls that
// run, and the record of what is pruned, are written into it. When enough is free again the reserve
// is filled again, and work goes on by itself. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "base/result.h"

namespace coffer::daemon {

class DiskReserve {
 public:
  // Takes the reserve. Nothing happens on a disk that is full already: Look says so.
  void Open(const std::string& state);
  // How much is free, for a timer.
  void Look();
  bool full() const { return full_; }
  // An Error while it is full.
  Status CheckRoom() const;
  // Of the file system as a whole; 0: not known.
  uint64_t disk_bytes() const { return disk_bytes_; }

 private:
  void Fill();
  void Release();

  std::mutex mutex_;
  std::string file_;
  std::string state_;
  std::atomic<uint64_t> disk_bytes_{0};
  uint64_t low_ = 0;
  bool filled_ = false;
  std::atomic<bool> full_{false};
};

}  // namespace coffer::daemon
