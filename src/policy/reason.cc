// SPDX-License-Identifier: Apache-2.0
#include "policy/reason.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/utf8.h"

namespace coffer::policy {
namespace {

// Ranges of Unicode 15: controls, then the format characters that are invisible or turn the text round.
bool IsHidden(uint32_t point) {
  constexpr struct {
    uint32_t first;
    uint32_t last;
  } kHidden[] = {{0x00, 0x1f},     {0x7f, 0x9f},     {0xad, 0xad},       {0x61c, 0x61c},
                 {0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e},   {0x2060, 0x206f},
                 {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}};
  for (const auto& range : kHidden) {
    if (point >= range.first && point <= range.last) {
      return true;
    }
  }
  return false;
}

}  // namespace

Status CheckReason(std::string_view reason) {
  const auto wrong = [](std::string_view what) {
    return Refused("policy.reason", fmt::format("the reason {}", what),
                   fmt::format("write one line of at most {} bytes, without control characters",
                               kMostReasonBytes));
  };
  if (reason.size() > kMostReasonBytes) {
    return wrong(fmt::format("has {} bytes", reason.size()));
  }
  while (!reason.empty()) {
    const Utf8Character next = DecodeUtf8(reason);
    if (next.length == 0) {
      return wrong("is not UTF-8");
    }
    if (IsHidden(next.point)) {
      return wrong("has a control character or an invisible one");
    }
    reason.remove_prefix(next.length);
  }
  return {};
}

}  // namespace coffer::policy
