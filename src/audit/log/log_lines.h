// SPDX-License-Identifier: Apache-2.0
//
// The complete lines of a file, one after the other, in constant memory. A line that is longer than a leaf may be ends
// the reading as if the file ended there: the caller sees by the size that it did not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace coffer::audit {

// All `size` bytes, or an error.
Status ReadAt(int fd, char* into, size_t size, uint64_t offset);

class RecordLines {
 public:
  // From `offset`, which is where a line begins, to `end`.
  RecordLines(int fd, uint64_t offset, uint64_t end) : fd_(fd), offset_(offset), end_(end) {}

  // Without the newline, valid until the next call. Nothing if there is no further complete line.
  Result<std::optional<std::string_view>> Next();
  // Behind the newline of the last line.
  uint64_t offset() const { return offset_; }

 private:
  int fd_;
  uint64_t offset_;
  uint64_t end_;
  std::string buffer_;
  size_t at_ = 0;  // of offset_ in buffer_
};

}  // namespace coffer::audit
