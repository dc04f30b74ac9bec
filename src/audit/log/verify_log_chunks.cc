// SPDX-License-Identifier: Apache-2.0
#include "audit/log/verify_log_chunks.h"

#include <algorithm>
#include <system_error>

#include "audit/log/log_lines.h"
#include "audit/log/records.h"

namespace coffer::audit {
namespace {

constexpr size_t kChunkBytes = 1 << 20;

ScannedLine Scan(std::string_view text) {
  ScannedLine line;
  line.text = text;
  if (text.starts_with('{')) {
    line.kind = ScannedLine::Kind::kLeaf;
    line.hash = LeafHash(text);
    line.problem = ScanLeaf(text, line.facts);
  } else if (text.starts_with('=')) {
    line.kind = ScannedLine::Kind::kCheckpoint;
    line.hash = LineHash(text);
  }
  return line;
}

std::unique_ptr<ScannedChunk> ScanAll(std::unique_ptr<ScannedChunk> chunk) {
  std::string_view rest = chunk->text;
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    chunk->lines.push_back(Scan(rest.substr(0, end)));
    rest.remove_prefix(end + 1);
  }
  return chunk;
}

}  // namespace

// Reads the next chunk, up to its last newline, and gives it to a thread. A line may be longer than a chunk: then the
// chunk grows, because the file may hold nonsense.
Status ChunkScanner::Begin() {
  auto chunk = std::make_unique<ScannedChunk>();
  size_t newline = std::string::npos;
  while (newline == std::string::npos) {
    const size_t have = chunk->text.size();
    const size_t more = std::min<uint64_t>(kChunkBytes, end_ - offset_ - have);
    if (more == 0) {
      done_ = true;
      return {};
    }
    chunk->text.resize(have + more);
    TRY(ReadAt(fd_, chunk->text.data() + have, more, offset_ + have));
    newline = chunk->text.rfind('\n');
  }
  chunk->text.resize(newline + 1);
  offset_ += chunk->text.size();
  const auto held = std::make_shared<std::unique_ptr<ScannedChunk>>(std::move(chunk));
  const auto scan = [held] { return ScanAll(std::move(*held)); };
  try {
    under_way_.push_back(
        std::async(threads_ > 1 ? std::launch::async : std::launch::deferred, scan));
  } catch (const std::system_error&) {  // no thread to be had: then on this one
    under_way_.push_back(std::async(std::launch::deferred, scan));
  }
  return {};
}

Result<std::unique_ptr<ScannedChunk>> ChunkScanner::Next() {
  while (!done_ && under_way_.size() < static_cast<size_t>(std::max(threads_, 1))) {
    TRY(Begin());
  }
  if (under_way_.empty()) {
    return std::unique_ptr<ScannedChunk>();
  }
  std::unique_ptr<ScannedChunk> chunk = under_way_.front().get();
  under_way_.pop_front();
  return chunk;
}

}  // namespace coffer::audit
