// SPDX-License-Identifier: Apache-2.0
//
// The lines of a log with everything that can be said of a line by itself, worked out on several threads and handed out
// in order. Memory is a few chunks, however long the log is.
#pragma once

#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "audit/log/checkpoint.h"
#include "audit/log/records_scan.h"
#include "base/result.h"

namespace coffer::audit {

struct ScannedLine {
  enum class Kind : uint8_t { kLeaf, kCheckpoint, kOther };
  Kind kind = Kind::kOther;
  const char* problem = nullptr;  // a leaf that cannot be read
  std::string_view text;          // into its chunk
  Hash hash{};                    // LeafHash or LineHash
  LeafFacts facts;                // of a leaf without a problem
};

struct ScannedChunk {
  std::string text;
  std::vector<ScannedLine> lines;
};

class ChunkScanner {
 public:
  ChunkScanner(int fd, uint64_t begin, uint64_t end, int threads)
      : fd_(fd), offset_(begin), end_(end), threads_(threads) {}

  // Null at the end. What stands behind the last newline is not in any chunk.
  Result<std::unique_ptr<ScannedChunk>> Next();
  // Bytes behind the last newline, once Next has returned null.
  uint64_t rest() const { return end_ - offset_; }

 private:
  Status Begin();

  int fd_;
  uint64_t offset_;
  uint64_t end_;
  int threads_;
  bool done_ = false;
  std::deque<std::future<std::unique_ptr<ScannedChunk>>> under_way_;
};

}  // namespace coffer::audit
