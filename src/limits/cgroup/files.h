// SPDX-License-Identifier: Apache-2.0
//
// How the probe looks at files: the few questions it asks, so that tests can present hosts and permissions that the
// machine they run on does not have. Everything that changes something goes to the kernel directly instead.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace coffer::limits {

class CgroupFiles {
 public:
  virtual ~CgroupFiles() = default;
  // The whole file, or nothing if it cannot be read.
  virtual std::optional<std::string> Read(const std::string& path) const = 0;
  // 0 if our credentials may write there, otherwise -errno. -EROFS for a read-only mount.
  virtual long Writable(const std::string& path) const = 0;
  // The inode of one of our namespaces ("pid", "cgroup"), or 0.
  virtual uint64_t Namespace(std::string_view name) const = 0;
};

}  // namespace coffer::limits
