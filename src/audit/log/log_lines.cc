// SPDX-License-Identifier: Apache-2.0
#include "audit/log/log_lines.h"

#include <errno.h>
#include <sys/syscall.h>

#include <algorithm>

#include "audit/log/records.h"
#include "base/sys.h"

namespace coffer::audit {

Status ReadAt(int fd, char* into, size_t size, uint64_t offset) {
  while (size > 0) {
    const long got = raw::Syscall(SYS_pread64, fd, raw::Arg(into), static_cast<long>(size),
                                  static_cast<long>(offset));
    if (got == -EINTR) {
      continue;
    }
    if (got < 0) {
      return sys::ErrnoError("audit.log", "cannot read the log", got);
    }
    if (got == 0) {
      return HostFault("audit.log", "the log became shorter while it was read");
    }
    into += got;
    size -= static_cast<size_t>(got);
    offset += static_cast<uint64_t>(got);
  }
  return {};
}

Result<std::optional<std::string_view>> RecordLines::Next() {
  constexpr size_t kChunk = 1 << 18;
  static_assert(kChunk > 2 * kMaxLeafBytes);
  size_t newline = buffer_.find('\n', at_);
  if (newline == std::string::npos) {
    buffer_.erase(0, at_);
    at_ = 0;
    const size_t have = buffer_.size();
    const uint64_t left = end_ - offset_ - have;
    const size_t more = std::min<uint64_t>(kChunk - std::min(have, kChunk), left);
    buffer_.resize(have + more);
    TRY(ReadAt(fd_, buffer_.data() + have, more, offset_ + have));
    newline = buffer_.find('\n', have);
    if (newline == std::string::npos) {
      return std::optional<std::string_view>();
    }
  }
  const std::string_view line(buffer_.data() + at_, newline - at_);
  if (line.size() > kMaxLeafBytes) {
    return std::optional<std::string_view>();
  }
  offset_ += line.size() + 1;
  at_ = newline + 1;
  return std::optional(line);
}

}  // namespace coffer::audit
