// SPDX-License-Identifier: Apache-2.0
//
// What a process holds open, for tests that swap a file after it was examined.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace coffer::test {

// `path`, or something in it.
inline bool HoldsOpen(pid_t pid, const std::filesystem::path& path) {
  std::error_code gone;
  for (const std::filesystem::directory_entry& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
    const std::string held = std::filesystem::read_symlink(entry.path(), gone);
    if (held == path || held.starts_with(path.string() + "/")) {
      return true;
    }
  }
  return false;
}

}  // namespace coffer::test
