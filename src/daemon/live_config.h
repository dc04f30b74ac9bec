// SPDX-License-Identifier: Apache-2.0
//
// The live configuration. Replaced as a whole, so that no reader sees half of a new one; readers hold
// a snapshot for as long as they need it. Thread-safe.
#pragma once

#include <memory>
#include <mutex>

#include "call/config_file.h"

namespace coffer::daemon {

class LiveConfig {
 public:
  std::shared_ptr<const call::FileConfig> current() const {
    const std::lock_guard lock(mutex_);
    return current_;
  }
  void Replace(call::FileConfig config) {
    auto made = std::make_shared<const call::FileConfig>(std::move(config));
    const std::lock_guard lock(mutex_);
    current_ = std::move(made);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const call::FileConfig> current_ = std::make_shared<const call::FileConfig>();
};

}  // namespace coffer::daemon
