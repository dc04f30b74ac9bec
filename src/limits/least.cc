// SPDX-License-Identifier: Apache-2.0
#include "limits/least.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/quantity.h"

namespace coffer::limits {
namespace {

constexpr uint64_t kMebibyte = 1 << 20;

Error TooSmall(std::string message, std::string_view flag, std::string_view least) {
  return Refused("policy.limit", std::move(message), fmt::format("write {} {}", flag, least));
}

}  // namespace

uint64_t LeastMemory(size_t call_bytes) {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t arguments =
      (2 * call_bytes / kMebibyte) * kMebibyte;  // whole ones, so that they can be written down
  return std::max(kMebibyte, 64 * page) + arguments;
}

Status CheckLeast(const policy::Limits& caps, size_t call_bytes) {
  if (const uint64_t least = LeastMemory(call_bytes); caps.memory < least) {
    // A number without a unit is bytes; who writes 512 means MiB.
    const uint64_t meant = std::max(least, caps.memory * kMebibyte);
    return TooSmall(
        fmt::format("a memory cap of {} is too small to start a program; the least is {}",
                    FormatSize(caps.memory), FormatSize(least)),
        "--memory", FormatSize(caps.memory < 64 * 1024 ? meant : least));
  }
  if (caps.open_files < kLeastOpenFiles) {
    return TooSmall(fmt::format("{} open files are too few to start a program; the least is {}",
                                caps.open_files, kLeastOpenFiles),
                    "--open-files", std::to_string(kLeastOpenFiles));
  }
  return {};
}

}  // namespace coffer::limits
