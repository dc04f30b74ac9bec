// SPDX-License-Identifier: Apache-2.0
//
// A thread says that it waits for the disk. Meanwhile it uses no processor, which matters to code
// that shares processors out.
#pragma once

namespace coffer {

// Told of the waits of one thread, on that thread.
class DiskWaitListener {
 public:
  virtual ~DiskWaitListener() = default;
  virtual void DiskWaitBegan() = 0;
  virtual void DiskWaitEnded() = 0;
};

inline thread_local DiskWaitListener* disk_wait_listener = nullptr;

// From its beginning to its end the thread computes nothing worth counting. Waits do not nest.
class DiskWait {
 public:
  DiskWait() : listener_(disk_wait_listener) {
    if (listener_ != nullptr) {
      listener_->DiskWaitBegan();
    }
  }
  ~DiskWait() {
    if (listener_ != nullptr) {
      listener_->DiskWaitEnded();
    }
  }
  DiskWait(const DiskWait&) = delete;
  DiskWait& operator=(const DiskWait&) = delete;

 private:
  DiskWaitListener* const listener_;
};

}  // namespace coffer
