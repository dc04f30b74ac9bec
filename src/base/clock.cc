// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <fmt/format.h>

namespace coffer {

std::string FormatTime(Nanos since_epoch) {
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch).count();
  const time_t seconds = millis / 1000;
  tm parts{};
  ::gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     millis % 1000);
}

}  // namespace coffer
