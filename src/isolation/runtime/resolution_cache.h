// SPDX-License-Identifier: Apache-2.0
//
// Remembers resolved runtimes between calls: reading eighty ELF files each time would cost more than the boundary.
//
// One file per runtime in a directory that is ours alone (mode 0700, our uid, not a link); anything
// else is ignored, never repaired and never trusted. An answer counts only while everything it was
// made from is unchanged: device, inode, size, mtime, ctime and mode of the program, of
// /etc/ld.so.cache and of the directories listed. And an answer is only kept, and only believed,
// where every entry is the system's own: each is opened and judged again like a fresh one
// (opened_runtime.h), so what a cache says decides nothing about the caller's files. Failing to
// write is not an error: the next call resolves again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "isolation/runtime/runtime_set.h"

namespace coffer::isolation {

// The identity of something the answer depends on; all zero if it is not there.
struct Witness {
  std::string path;
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size = 0;
  int64_t mtime = 0;
  int64_t ctime = 0;
  uint64_t mode = 0;
  bool operator==(const Witness&) const = default;
};

Witness Observe(const std::string& path);

class ResolutionCache {
 public:
  // An empty directory name, or one that cannot be used, makes a cache that has nothing and keeps nothing.
  explicit ResolutionCache(const std::string& directory);

  // `key` is free text; the file's name is made from it.
  std::optional<RuntimeSet> Find(std::string_view key) const;
  void Keep(std::string_view key, const std::vector<Witness>& witnesses,
            const RuntimeSet& set) const;

 private:
  std::string directory_path_;
  mutable UniqueFd directory_;
};

// The bytes of a cache file, and back; nothing if they are damaged, of another version, or for another key.
struct Remembered {
  std::vector<Witness> witnesses;
  RuntimeSet set;
};
std::string EncodeResolution(std::string_view key, const std::vector<Witness>& witnesses,
                             const RuntimeSet& set);
std::optional<Remembered> DecodeResolution(std::string_view key, std::string_view bytes);

}  // namespace coffer::isolation
