// SPDX-License-Identifier: Apache-2.0
#include "policy/never_send.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/split.h"
#include "base/utf8.h"

namespace coffer::policy {
namespace {

constexpr size_t kShortest = 8;
constexpr size_t kLongest = 256;
constexpr size_t kMostValues = 64;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

Error BadValues(std::string message, std::string hint) {
  return Refused("policy.egress", std::move(message), std::move(hint));
}

Status CheckValue(std::string_view value, size_t line) {
  const auto is_control = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) == 0x7f;
  };
  if (value.size() < kShortest || value.size() > kLongest) {
    return BadValues(fmt::format("line {} has {} bytes", line, value.size()),
                     fmt::format("a value has {} to {} bytes, so that it is not found by accident",
                                 kShortest, kLongest));
  }
  if (std::any_of(value.begin(), value.end(), is_control) || !IsUtf8(value)) {
    return BadValues(fmt::format("line {} holds a control character or is not UTF-8", line),
                     "write one value on a line, and end lines with LF alone");
  }
  if (value.front() == ' ' || value.back() == ' ') {
    return BadValues(fmt::format("line {} begins or ends with a space", line),
                     "take the space out: it would be part of the value");
  }
  return {};
}

}  // namespace

Result<std::vector<NeverSendValue>> ParseNeverSend(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) {
    return BadValues("line 1 begins with a byte order mark",
                     "save the file without one: it would be part of the value");
  }
  std::vector<NeverSendValue> values;
  size_t line = 0;
  for (const std::string_view value : SplitText(text, '\n')) {
    ++line;
    if (value.empty()) {
      continue;
    }
    TRY(CheckValue(value, line));
    values.push_back({line, std::string(value)});
  }
  if (values.size() > kMostValues) {
    return BadValues(fmt::format("{} values", values.size()),
                     fmt::format("keep at most {}", kMostValues));
  }
  if (values.empty()) {
    return BadValues("the file holds no value", "write one value on a line");
  }
  return values;
}

}  // namespace coffer::policy
