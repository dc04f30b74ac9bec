// SPDX-License-Identifier: Apache-2.0
//
// The configuration that holds now. Replaced as a whole, so that nobody sees half of a new one; whoever asked keeps
// what he got for as long as he needs it. Thread-safe.
#pragma once

#include <memory>
#include <mutex>

#include "daemon/config_file.h"

namespace coffer::daemon {

class LiveConfig {
 public:
  std::shared_ptr<const FileConfig> current() const {
    const std::lock_guard lock(mutex_);
    return current_;
  }
  void Replace(FileConfig config) {
    auto made = std::make_shared<const FileConfig>(std::move(config));
    const std::lock_guard lock(mutex_);
    current_ = std::move(made);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const FileConfig> current_ = std::make_shared<const FileConfig>();
};

}  // namespace coffer::daemon
