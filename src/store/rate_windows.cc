// SPDX-License-Identifier: Apache-2.0
#include "store/rate_windows.h"

#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

namespace coffer::store {
namespace {

using policy::SlidingWindow;

constexpr std::string_view kTag = "window/1";
static_assert(std::is_trivially_copyable_v<SlidingWindow>);
constexpr size_t kSize = sizeof(SlidingWindow);

}  // namespace

std::string PackWindows(const std::vector<SlidingWindow>& windows) {
  std::string bytes(kTag);
  for (const SlidingWindow& window : windows) {
    const auto raw = std::bit_cast<std::array<char, kSize>>(window);
    bytes.append(raw.data(), raw.size());
  }
  return bytes;
}

SlidingWindow UnpackWindow(std::string_view bytes, const policy::RateRule& rule) {
  if (bytes.starts_with(kTag) && (bytes.size() - kTag.size()) % kSize == 0) {
    for (size_t at = kTag.size(); at < bytes.size(); at += kSize) {
      std::array<char, kSize> raw;
      std::memcpy(raw.data(), bytes.data() + at, kSize);
      const auto window = std::bit_cast<SlidingWindow>(raw);
      if (window.rule() == rule) {
        return window;
      }
    }
  }
  return SlidingWindow(rule);
}

}  // namespace coffer::store
