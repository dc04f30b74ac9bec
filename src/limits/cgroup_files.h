// SPDX-License-Identifier: Apache-2.0
//
// How the probe looks at files: the three questions it asks, so that tests can present hosts and permissions that the
// machine they run on does not have. Everything that changes something goes to the kernel directly instead.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace coffer::limits {

class CgroupFiles {
 public:
  virtual ~CgroupFiles() = default;
  // The whole file, or nothing if it cannot be read.
  virtual std::optional<std::string> Read(const std::string& path) const = 0;
  // 0 if our credentials may write there, otherwise -errno. -EROFS for a read-only mount.
  virtual long Writable(const std::string& path) const = 0;
  // The inode of our pid namespace, or 0.
  virtual uint64_t PidNamespace() const = 0;
};

}  // namespace coffer::limits
