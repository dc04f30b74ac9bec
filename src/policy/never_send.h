// SPDX-License-Identifier: Apache-2.0
//
// Values that no request may hold: the file of --never-send, and of `never_send` in [egress].
//
// One value on a line, of 8 to 256 bytes. Empty lines are left out. There are no comments: a line that was meant as one
// would be a value, and a value that was taken for one would leave. A mistake is told by the number of its line, because
// messages are read by others than the file.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace coffer::policy {

inline constexpr size_t kMostNeverSendBytes = 64UL << 10;  // of the file

struct NeverSendValue {
  size_t line = 0;  // from 1; what a receipt names
  std::string value;
  bool operator==(const NeverSendValue&) const = default;
};

// kRefused with the line: one that is too short or too long, has spaces around it or a byte order mark in front, or holds
// control characters or bytes that are not UTF-8; more than 64 values, or none.
Result<std::vector<NeverSendValue>> ParseNeverSend(std::string_view text);

}  // namespace coffer::policy
