// SPDX-License-Identifier: Apache-2.0
#include "limits/child_use.h"

#include <sys/resource.h>

namespace coffer::limits {

ChildUse ReadChildUse() {
  rusage used{};
  if (::getrusage(RUSAGE_CHILDREN, &used) != 0) {
    return {};
  }
  const auto time = [](const timeval& value) -> Nanos {
    return std::chrono::seconds(value.tv_sec) + std::chrono::microseconds(value.tv_usec);
  };
  // Blocks of 512 bytes, from the same counters as /proc/PID/io.
  return {time(used.ru_utime) + time(used.ru_stime),
          512 * (static_cast<uint64_t>(used.ru_inblock) + static_cast<uint64_t>(used.ru_oublock))};
}

}  // namespace coffer::limits
