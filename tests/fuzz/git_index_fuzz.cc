// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as an index or a list of conflicts: no crash, and no name that leads elsewhere in what is kept.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "isolation/git_index.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace coffer::isolation;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const size_t hash_size : {size_t{20}, size_t{32}}) {
    (void)IndexKeepsToWorktree(text, hash_size);
    const auto paths = ConflictPaths(text, hash_size);
    for (size_t i = 0; paths && i < paths->size(); ++i) {
      if (paths->at(i).size() > size || paths->at(i).find('\0') != std::string::npos) {
        std::abort();
      }
    }
  }
  return 0;
}
