// SPDX-License-Identifier: Apache-2.0
//
// Lines from one descriptor and to another, for a loop that polls: no read and no write here ever waits.
//
// A line that is too long is reported once and skipped. A reader that does not read makes pending() grow, and the owner
// stops reading then.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace coffer::cli {

class LineReader {
 public:
  LineReader(int fd, size_t most) : fd_(fd), most_(most) {}
  // Reads once, when the descriptor is readable; `line` gets each whole line without its end, `too_long` is told of one
  // that has more bytes than `most`. What has no end before the end of the stream is a line too.
  void Read(const std::function<void(std::string_view)>& line,
            const std::function<void()>& too_long);
  bool ended() const { return ended_; }

 private:
  const int fd_;
  const size_t most_;
  std::string begun_;
  bool skipping_ = false;
  bool ended_ = false;
};

class LineWriter {
 public:
  explicit LineWriter(int fd) : fd_(fd) {}
  void Add(const std::string& line) { pending_ += line; }
  // Writes what the descriptor takes at once, when it is writable.
  void Write();
  size_t pending() const { return pending_.size() - written_; }
  bool broken() const { return broken_; }
  // The reader is gone, or does not matter any more.
  void Drop();

 private:
  const int fd_;
  std::string pending_;
  size_t written_ = 0;
  bool broken_ = false;
};

}  // namespace coffer::cli
