// SPDX-License-Identifier: Apache-2.0
//
// Carries a boundary's stdout or stderr to ours, up to a cap that both share.
//
// Past the cap a marker is written once, for text that a model reads, and everything further is
// read and dropped. So a flood costs the writer's time and none of our memory: at most one buffer
// is held per stream. Nothing is read while our own reader is slow, and we never block in write: a
// stalled reader cannot keep the supervisor from its deadlines.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/hash.h"
#include "base/unique_fd.h"

namespace coffer::output {

// What both streams of a call may still deliver.
struct OutputBudget {
  uint64_t cap = 0;
  uint64_t delivered = 0;  // bytes that went out, markers not counted
  uint64_t produced = 0;   // bytes that came in
  bool marks =
      true;  // a cut stream ends with a marker; false: its bytes are the command's own alone
  bool truncated() const { return produced > delivered; }
};

class Relay {
 public:
  // `to` is borrowed. `hashing` keeps a digest of the delivered bytes.
  Relay(int to, OutputBudget* budget, bool hashing) : to_(to), budget_(budget), hashing_(hashing) {}

  // `from` must be non-blocking.
  void Attach(UniqueFd from) { from_ = std::move(from); }

  int read_fd() const { return from_.valid() && pending_.empty() ? from_.get() : -1; }
  int write_fd() const { return pending_.empty() ? -1 : to_; }
  bool open() const { return from_.valid() || !pending_.empty(); }

  // One read; ends the stream at end of file.
  void OnReadable();
  // One write of at most PIPE_BUF bytes, which cannot block after POLLOUT.
  void OnWritable();
  // Our reader is gone: so is the boundary's.
  void DropReader();

  // Why output could not be delivered (a full disk, ...); 0 if it was, or if its reader went away.
  int error() const { return error_; }

  std::string Digest() { return hash_.Finish(); }

  // The first `most` bytes that were delivered are kept for the record.
  void Keep(size_t most) { keeps_ = most; }
  const std::string& kept() const { return kept_; }

 private:
  void Take(const char* data, size_t size);

  UniqueFd from_;
  int to_;
  OutputBudget* budget_;
  std::string pending_;
  Sha256 hash_;
  bool hashing_;
  size_t keeps_ = 0;
  std::string kept_;
  bool marked_ = false;
  int error_ = 0;
  bool reader_gone_ = false;
};

// Carries our stdin into the boundary, one buffer at a time.
class Feed {
 public:
  explicit Feed(int from) : from_(from) {}
  // `to` must be non-blocking; closed at our end of file, or when no process inside reads any more.
  void Attach(UniqueFd to) { to_ = std::move(to); }

  int read_fd() const { return to_.valid() && size_ == 0 ? from_ : -1; }
  int write_fd() const { return to_.valid() && size_ > 0 ? to_.get() : -1; }
  void OnReadable();
  void OnWritable();
  void Close() { to_.Reset(); }
  // A write has found that no process inside reads it any more.
  bool reader_gone() const { return reader_gone_; }
  // The first `most` bytes that were read are kept for the record.
  void Keep(size_t most) { keeps_ = most; }
  const std::string& kept() const { return kept_; }

 private:
  int from_;
  UniqueFd to_;
  std::array<char, 16384> buffer_;
  size_t size_ = 0;
  size_t at_ = 0;
  bool reader_gone_ = false;
  size_t keeps_ = 0;
  std::string kept_;
};

}  // namespace coffer::output
