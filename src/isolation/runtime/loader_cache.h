// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes the cache of the dynamic loader, /etc/ld.so.cache, in the format "glibc-ld.so.cache1.1".
//
// The layout (glibc, sysdeps/generic/dl-cache.h): a header of 48 bytes, `count` entries of 24 bytes sorted by
// descending name, then the strings; numbers in host byte order, offsets from the start of the header. Files from
// before glibc 2.32 carry an older table in front. Every offset is checked; a damaged file answers "not there".
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace coffer::isolation {

class LoaderCache {
 public:
  // Reads the file; without one, or with a damaged one, the cache is empty. Only a file of root's is used.
  // Read, not mapped: for some 40 kB that is three times as fast, and a file that shrinks does no harm.
  void Open(const std::string& path);

  // Uses `bytes` as they are; they must outlive the cache.
  void Use(std::string_view bytes);

  // The path of a library of the native machine, outside glibc-hwcaps; empty if there is none. Ends with a NUL.
  std::string_view Find(std::string_view soname) const;

  // All that Find finds, as (soname, path).
  std::vector<std::pair<std::string, std::string>> All() const;

  size_t size() const { return count_; }

 private:
  struct Entry;
  Entry At(size_t index) const;
  std::string_view Text(size_t offset) const;

  std::string_view bytes_;  // from the header on
  size_t count_ = 0;
  std::unique_ptr<char[]> owned_;
};

// A cache with these (soname, path) pairs for the native machine.
std::string BuildLoaderCache(std::vector<std::pair<std::string, std::string>> libraries);

}  // namespace coffer::isolation
