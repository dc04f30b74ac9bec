// SPDX-License-Identifier: Apache-2.0
#include "cli/line_stream.h"

#include <errno.h>
#include <limits.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>

#include "base/sys.h"

namespace coffer::cli {

using raw::Arg;
using raw::Syscall;

void LineReader::Read(const std::function<void(std::string_view)>& line,
                      const std::function<void()>& too_long) {
  std::array<char, 65536> buffer;
  const long got = Syscall(SYS_read, fd_, Arg(buffer.data()), buffer.size());
  if (got == -EINTR || got == -EAGAIN) {
    return;
  }
  std::string_view bytes(buffer.data(), static_cast<size_t>(std::max(got, 0L)));
  ended_ = got <= 0;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
    if (!skipping_ && begun_.size() + piece.size() > most_) {
      skipping_ = true;
      begun_.clear();
      too_long();
    }
    if (!skipping_) {
      begun_ += piece;
    }
    if (end != std::string_view::npos) {
      if (!skipping_) {
        line(begun_);
      }
      skipping_ = false;
      begun_.clear();
    }
  }
  if (ended_ && !begun_.empty()) {
    line(begun_);
    begun_.clear();
  }
}

void LineWriter::Write() {
  // A pipe that is writable takes this much without waiting.
  const size_t size = std::min<size_t>(pending(), PIPE_BUF);
  const long put = Syscall(SYS_write, fd_, Arg(pending_.data() + written_), size);
  if (put < 0 && put != -EINTR && put != -EAGAIN) {
    broken_ = true;
    Drop();
    return;
  }
  written_ += static_cast<size_t>(std::max(put, 0L));
  if (pending() == 0 || written_ > (size_t{1} << 20)) {
    pending_.erase(0, written_);
    written_ = 0;
  }
}

void LineWriter::Drop() {
  pending_.clear();
  written_ = 0;
}

}  // namespace coffer::cli
