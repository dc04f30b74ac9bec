// SPDX-License-Identifier: Apache-2.0
#include "base/moment.h"

#include <fmt/format.h>
#include <stdio.h>
#include <time.h>

#include "base/quantity.h"
#include "base/text.h"

namespace coffer {

Result<Nanos> ParseMoment(std::string_view text, Nanos now) {
  const bool has_unit = text.find_first_not_of("0123456789") != std::string_view::npos;
  if (const Result<Nanos> ago = ParseDuration(text); has_unit && ago.ok()) {
    return now - *ago;
  }
  const std::string given(text);
  tm parts{};
  int used = 0;
  int fields =
      sscanf(given.c_str(), "%4d-%2d-%2d%n", &parts.tm_year, &parts.tm_mon, &parts.tm_mday, &used);
  bool good = fields == 3 && used == 10;
  size_t end = 10;
  if (good && given.size() > end) {
    int more = 0;
    fields = sscanf(given.c_str() + end, "T%2d:%2d%n", &parts.tm_hour, &parts.tm_min, &more);
    good = fields == 2 && more == 6;
    end += 6;
    if (good && given.size() > end && given[end] == ':') {
      good = sscanf(given.c_str() + end, ":%2d%n", &parts.tm_sec, &more) == 1 && more == 3;
      end += 3;
      if (good && given.size() > end && given[end] == '.') {
        end = given.find_first_not_of("0123456789", end + 1);
        end = end == std::string::npos ? given.size() : end;
      }
    }
    good = good && (given.size() == end || given.substr(end) == "Z");
  }
  good = good && parts.tm_year >= 1970 && parts.tm_year <= 2200 && parts.tm_mon >= 1 &&
         parts.tm_mon <= 12 && parts.tm_mday >= 1 && parts.tm_mday <= 31 && parts.tm_hour < 24 &&
         parts.tm_min < 60 && parts.tm_sec <= 60;
  if (!good) {
    return Refused("policy.usage", fmt::format("\"{}\" is not a time", Printable(text)),
                   "write 2h for two hours ago, or 2026-01-31T12:00:00Z");
  }
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  return Nanos(std::chrono::seconds(::timegm(&parts)));
}

}  // namespace coffer
