// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as /etc/ld.so.cache: no read outside them, and an answer that lies inside and ends there.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "isolation/runtime/loader_cache.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // The first bytes are the name to look for, the rest is the file, in memory of exactly its size.
  const size_t name_size = size == 0 ? 0 : data[0] % 32;
  if (size < 1 + name_size) {
    return 0;
  }
  const std::string_view name(reinterpret_cast<const char*>(data) + 1, name_size);
  const size_t rest = size - 1 - name_size;
  std::unique_ptr<char[]> copy(new char[rest]);
  std::memcpy(copy.get(), data + 1 + name_size, rest);
  coffer::isolation::LoaderCache cache;
  cache.Use({copy.get(), rest});
  for (const std::string_view wanted :
       {name, std::string_view("libc.so.6"), std::string_view("libm.so.6")}) {
    const std::string_view path = cache.Find(wanted);
    if (!path.empty() &&
        (path.data() < copy.get() || path.data() + path.size() >= copy.get() + rest ||
         path.data()[path.size()] != '\0')) {
      std::abort();
    }
  }
  return 0;
}
